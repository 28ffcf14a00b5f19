package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// benchSchema is a typical input schema of a tool.
const benchSchema = `{"type":"object","additionalProperties":false,"required":["repository","steps"],"properties":{` +
	`"repository":{"type":"string","minLength":1,"pattern":"^[a-z/]+$"},"branch":{"type":"string"},"retries":{"type":"integer","minimum":0,"maximum":10},` +
	`"steps":{"type":"array","items":{"$ref":"#/$defs/step"}}},"$defs":{"step":{"type":"object","additionalProperties":false,"required":["name"],"properties":{` +
	`"name":{"type":"string","maxLength":64},"kind":{"enum":["build","test","ship"]},"timeout":{"type":"number","exclusiveMinimum":0},` +
	`"environment":{"type":"object","additionalProperties":{"type":"string"}},"tags":{"type":"array","items":{"type":"string"}}}}}}`

// benchValue is a value of about so many bytes that fits.
func benchValue(size int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"repository":"example/one","branch":"main","retries":3,"steps":[`)
	for i := 0; b.Len() < size-100; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"step %d","kind":"test","timeout":%d.5,"environment":{"GOFLAGS":"-race","HOME":"/tmp"},"tags":["fast","unit"]}`, i, i+1)
	}
	b.WriteString(`]}`)
	return json.RawMessage(b.String())
}

// BenchmarkCheck runs the library by itself in turn with each check, as its floor.
func BenchmarkCheck(b *testing.B) {
	ours := compile(b, benchSchema, false)
	theirs, err := library(benchSchema)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1 << 10, 100 << 10} {
		value := benchValue(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			var floor time.Duration
			for b.Loop() {
				b.StopTimer()
				began := time.Now()
				doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
				if err != nil || theirs.Validate(doc) != nil {
					b.Fatal("the library refuses it")
				}
				floor += time.Since(began)
				b.StartTimer()
				if err := ours.Check(b.Context(), value); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(floor)/float64(b.Elapsed()), "of-floor")
		})
	}
}

// BenchmarkCheckAndFill checks arguments as a call does, without nulls and with two in each step: a list that is nil, and
// a member that is left out.
func BenchmarkCheckAndFill(b *testing.B) {
	schema := compile(b, benchSchema, false)
	for _, size := range []int{1 << 10, 100 << 10} {
		value := benchValue(size)
		for name, value := range map[string]json.RawMessage{
			"plain": value,
			"nulls": bytes.ReplaceAll(bytes.ReplaceAll(value, []byte(`["fast","unit"]`), []byte("null")), []byte(`"test"`), []byte("null")),
		} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				b.SetBytes(int64(len(value)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := schema.CheckAndFill(b.Context(), value); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
