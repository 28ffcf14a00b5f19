package gateway

import "testing"

// BenchmarkParse reads the message of the polling path.
func BenchmarkParse(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":12,"method":"tasks/get","params":{"taskId":"NOSUCHTASKNOSUCHTASKNOSUCH","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parse(body); err != nil {
			b.Fatal(err)
		}
	}
}
