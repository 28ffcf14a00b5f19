package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/origin"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	// localPrincipal is the principal of a client on a pipe, unless the server's options say otherwise.
	localPrincipal = "local"
	// remotePrefix is put before the principal of a caller over HTTP if it is localPrincipal, alone or behind
	// such prefixes.
	remotePrefix = "remote:"
)

// guardPrincipal returns a function that calls Options.Principal in a goroutine of its own. If Principal panics or ends
// its goroutine, the request is refused and not left without an answer.
func guardPrincipal(s *taskserver.Backend, own func(context.Context) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (principal string, err error) {
		if !guard.Apart(s.Logger(), "Options.Principal", func() { principal, err = own(ctx) }) {
			return "", errNoPrincipal
		}
		return principal, err
	}
}

// errNoPrincipal says that Options.Principal panicked or ended its goroutine.
var errNoPrincipal = errors.New("Options.Principal did not return")

// identify returns the principal of a request over HTTP. It never returns that of the client on a pipe, whoever has
// chosen the name. Different names stay different.
func (g *Gateway) identify(ctx context.Context) (string, error) {
	principal, err := g.principal(ctx)
	if err != nil || origin.IsLocal(ctx) {
		return principal, err
	}
	name := principal
	for strings.HasPrefix(name, remotePrefix) {
		name = strings.TrimPrefix(name, remotePrefix)
	}
	if name == localPrincipal {
		return remotePrefix + principal, nil
	}
	return principal, nil
}

// addressKey is the secret with which the addresses of anonymous callers are hashed. Without a secret, anyone could
// find an address by hashing all of them.
type addressKey [sha256.Size]byte

type addressKeyKey struct{}

// addressKeyOf returns the key that all gateways of a server share. With a session key, all replicas share it, and it
// outlives the process.
func addressKeyOf(s *taskserver.Backend) *addressKey {
	return s.Attached(addressKeyKey{}, func() any {
		key := new(addressKey)
		if session := s.Options().SessionKey; session != nil {
			*key = sha256.Sum256(append([]byte("mcptask address\x00"), session...))
		} else {
			_, _ = rand.Read(key[:]) // never fails
		}
		return key
	}).(*addressKey)
}

// hashedBytes is how many bytes of the hash of an address are kept.
const hashedBytes = 12

// hash returns a keyed hash of the network of a remote address, or "" if that is not an IP address. Whoever has an IPv6
// address usually has its whole network of 64 bits.
func (k *addressKey) hash(remote string) string {
	address, err := netip.ParseAddr(hostOf(remote))
	if err != nil {
		return ""
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // never fails
		address = network.Addr()
	}
	bytes := address.As16()
	sum := sha256.Sum256(append(k[:len(k):len(k)], bytes[:]...))
	return base64.RawURLEncoding.EncodeToString(sum[:hashedBytes])
}

// locate sets Local and Address of the caller of a request.
func (g *Gateway) locate(r *http.Request, caller taskserver.Caller) taskserver.Caller {
	switch {
	case origin.IsLocal(r.Context()):
		caller.Local = caller.Principal == localPrincipal
	case caller.Principal == "":
		caller.Address = g.addresses.hash(r.RemoteAddr)
	}
	return caller
}
