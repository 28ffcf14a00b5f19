package gateway

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// With a session key, the ID of a session of 2025-11-25 or earlier is a signed token:
//
//	mcptask1.PAYLOAD.SIGNATURE
//
// PAYLOAD is the base64url of a JSON object, and SIGNATURE that of an HMAC-SHA256 of the
// text before it. A replica opens the session again with the token alone. It is signed and not
// encrypted: it has the client's declaration of itself, and no secret. The principal is in it as a
// keyed hash, so whoever reads the token cannot even guess the principal.

const (
	// tokenPrefix tells a token from the ID of an SDK, and one version of tokens from another.
	tokenPrefix = "mcptask1."
	// longestToken limits a token in bytes. Proxies and servers allow 8 KiB and more for all
	// headers of a request.
	longestToken = 4 << 10
)

// sessionToken is the content of a session's ID.
type sessionToken struct {
	// Name is the session's name on every replica, in [taskserver.Caller]. It is random.
	Name string `json:"n"`
	// Owner is the keyed hash of the principal.
	Owner []byte `json:"o"`
	// Began is when the session began by the store's clock, in seconds since 1970.
	Began int64 `json:"b"`
	// Revision is the protocol version that was negotiated. Capabilities and Client are
	// members of the client's initialize.
	Revision     string          `json:"r"`
	Capabilities json.RawMessage `json:"c,omitempty"`
	Client       json.RawMessage `json:"i,omitempty"`
}

// began returns when the session began.
func (t *sessionToken) began() time.Time { return time.Unix(t.Began, 0) }

// sessionKey has the two keys that come from one session key of the options.
type sessionKey struct{ sign, own []byte }

// sessionKeys signs and verifies session IDs. The first key signs, and all of them verify. nil
// means that the server has no session key.
type sessionKeys []sessionKey

// newSessionKeys returns the keys of a server's options.
func newSessionKeys(options taskserver.Options) (keys sessionKeys) {
	if options.SessionKey == nil {
		return nil
	}
	for _, secret := range append([][]byte{options.SessionKey}, options.OtherSessionKeys...) {
		keys = append(keys, sessionKey{deriveKey(secret, "mcptask session 1 sign"), deriveKey(secret, "mcptask session 1 owner")})
	}
	return keys
}

func deriveKey(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, sha256.Size)
	if err != nil { // cannot happen: only a key of more than 255 hashes is too long
		panic(err)
	}
	return key
}

func hash(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// sign returns the ID of a new session, and the token in it. t has all but Name and Owner. If the
// client's declaration of itself is too long for an ID, sign leaves out all but the client's name and version.
// It returns "" if the rest is too long too.
func (k sessionKeys) sign(principal string, t sessionToken) (string, *sessionToken) {
	t.Name, t.Owner = rand.Text(), hash(k[0].own, principal)
	id := k.encode(&t)
	if len(id) > longestToken {
		var client struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		_ = json.Unmarshal(t.Client, &client) // an unreadable member stays out
		t.Client, _ = json.Marshal(client)    // strings always marshal
		id = k.encode(&t)
	}
	if id == "" || len(id) > longestToken {
		return "", nil
	}
	return id, &t
}

// isSigned reports whether an ID has the form of those that the gateway gives its sessions. No SDK gives such an ID.
func (g *Gateway) isSigned(id string) bool {
	return g.keys != nil && strings.HasPrefix(id, tokenPrefix)
}

// encode returns a signed token, or "" if the client's part of it is no JSON.
func (k sessionKeys) encode(t *sessionToken) string {
	payload, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	signed := tokenPrefix + base64.RawURLEncoding.EncodeToString(payload)
	return signed + "." + k[0].signature(signed)
}

// signature returns the signature of a text.
func (k sessionKey) signature(text string) string {
	return base64.RawURLEncoding.EncodeToString(hash(k.sign, text))
}

// verify returns the token in a session's ID and whether the principal is the session's. It
// returns nil if no key has signed the ID, or if the session began too long before now.
func (k sessionKeys) verify(id, principal string, now time.Time) (t *sessionToken, owns bool) {
	if len(id) > longestToken || !strings.HasPrefix(id, tokenPrefix) {
		return nil, false
	}
	end := strings.LastIndexByte(id, '.') // the prefix has one
	for _, key := range k {
		// Decoded, two signatures may be alike: base64 ignores line breaks. A session has one ID.
		if !hmac.Equal([]byte(id[end+1:]), []byte(key.signature(id[:end]))) {
			continue
		}
		payload, err := base64.RawURLEncoding.DecodeString(id[min(len(tokenPrefix), end):end])
		t = new(sessionToken)
		if err != nil || json.Unmarshal(payload, t) != nil || now.Sub(t.began()) > taskserver.SessionLife {
			return nil, false
		}
		return t, hmac.Equal(t.Owner, hash(key.own, principal))
	}
	return nil, false
}
