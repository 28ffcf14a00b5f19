package gateway

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestAddressHash checks which addresses are one network, and that their hashes differ from server to server unless
// the servers have a session key in common.
func TestAddressHash(t *testing.T) {
	server := func(key []byte) *addressKey {
		s, err := taskserver.New(taskserver.Options{SessionKey: key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		made := addressKeyOf(s.Backend())
		if addressKeyOf(s.Backend()) != made {
			t.Error("a server has two keys")
		}
		return made
	}
	key := server(nil)
	seen := map[string]string{}
	for _, network := range [][]string{
		{"192.0.2.1:80", "192.0.2.1:81", "192.0.2.1", "[::ffff:192.0.2.1]:80"},
		{"192.0.2.2:80"},
		{"[2001:db8::1]:80", "[2001:db8::2]:80", "2001:db8::3", "[2001:db8::1%eth0]:80"},
		{"[2001:db8:0:1::1]:80"},
	} {
		for _, address := range network {
			hash := key.hash(address)
			if hash != key.hash(network[0]) || hash == "" {
				t.Errorf("%s is not of the network of %s", address, network[0])
			}
			if other, ok := seen[hash]; ok && other != network[0] {
				t.Errorf("%s is of the network of %s", address, other)
			}
			seen[hash] = network[0]
		}
	}
	for _, none := range []string{"", "@", "pipe", "host:80", "mcptasktest"} {
		if got := key.hash(none); got != "" {
			t.Errorf("%q has the hash %q", none, got)
		}
	}
	secret := make([]byte, taskstore.MinSessionKey)
	one, other := server(secret).hash("192.0.2.1"), server(secret).hash("192.0.2.1")
	if one != other || one == key.hash("192.0.2.1") || one == server(nil).hash("192.0.2.1") {
		t.Errorf("%s, %s, %s", one, other, key.hash("192.0.2.1"))
	}
}
