package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The parts of a record that no query looks at are stored as bytes: lengths and contents one after
// the other. Every byte is kept, and nil stays nil. JSON would change both.

// codecVersion is the first byte of what is encoded. A later version of this package may write
// another, and reads this one too.
const codecVersion = 1

// errCorrupt says that stored bytes are not what was encoded.
var errCorrupt = errors.New("the stored bytes are damaged")

// newerError says that stored bytes have a version that this package does not read.
type newerError byte

func (e newerError) Error() string {
	return fmt.Sprintf("the stored bytes have format %d, and this program reads %d: a newer version of mcptask has written them, or they are damaged", byte(e), codecVersion)
}

// EncodeTerms encodes what is fixed at a record's creation, is short and has no column: Revision,
// ExternalID, CanAsk, Keep, Poll and Trace. Arguments, which may be long, are stored as they are.
func EncodeTerms(r *mcptask.Record) []byte {
	b := make([]byte, 0, 64+len(r.Revision)+len(r.ExternalID)+len(r.Trace)+32*len(r.CanAsk))
	b = append(b, codecVersion)
	b = appendString(b, r.Revision)
	b = appendString(b, r.ExternalID)
	b = binary.AppendUvarint(b, uint64(len(r.CanAsk)))
	for _, method := range r.CanAsk {
		b = appendString(b, method)
	}
	b = binary.AppendVarint(b, int64(r.Keep))
	b = binary.AppendVarint(b, int64(r.Poll))
	return appendString(b, r.Trace)
}

// DecodeTerms sets in a record what EncodeTerms has encoded. It sets nothing if it returns an error.
func DecodeTerms(b []byte, r *mcptask.Record) error {
	d := newDecoder(b)
	revision, externalID := d.string(), d.string()
	var canAsk []string
	for range d.count() {
		canAsk = append(canAsk, d.string())
	}
	keep, poll, trace := time.Duration(d.varint()), time.Duration(d.varint()), d.string()
	if err := d.finish(); err != nil {
		return err
	}
	r.Revision, r.ExternalID, r.CanAsk, r.Keep, r.Poll, r.Trace = revision, externalID, canAsk, keep, poll, trace
	return nil
}

// EncodeMark encodes the Nonce of a record, and what its Claim has besides the worker.
func EncodeMark(r *mcptask.Record) []byte {
	b := make([]byte, 0, 8+len(r.Nonce)+len(r.Claim.State)+len(r.Claim.Nonce))
	return appendString(appendString(appendString(append(b, codecVersion), r.Nonce), string(r.Claim.State)), r.Claim.Nonce)
}

// DecodeMark sets in a record what EncodeMark has encoded. Rows of the first versions of the schema have none.
func DecodeMark(b []byte, r *mcptask.Record) error {
	if len(b) == 0 {
		return nil
	}
	d := newDecoder(b)
	r.Nonce, r.Claim.State, r.Claim.Nonce = d.string(), mcptask.ClaimState(d.string()), d.string()
	return d.finish()
}

// EncodeInputs encodes the questions of a record.
func EncodeInputs(inputs []mcptask.Input) []byte {
	b := []byte{codecVersion}
	b = binary.AppendUvarint(b, uint64(len(inputs)))
	for i := range inputs {
		in := &inputs[i]
		b = appendString(b, in.Key)
		b = appendString(b, in.Method)
		b = appendBytes(b, in.Params)
		b = appendBytes(b, in.Schema)
		b = appendString(b, string(in.State))
		b = appendBytes(b, in.Response)
		b = appendError(b, in.Error)
		b = append(b, encodeFlags(in.Fetched, in.Parked, in.Nonce != ""))
		if in.Nonce != "" {
			b = appendString(b, in.Nonce)
		}
	}
	return b
}

// DecodeInputs returns the questions that EncodeInputs has encoded. They share the bytes.
func DecodeInputs(b []byte) ([]mcptask.Input, error) {
	d := newDecoder(b)
	var inputs []mcptask.Input
	for range d.count() {
		inputs = append(inputs, mcptask.Input{
			Key: d.string(), Method: d.string(), Params: d.bytes(), Schema: d.bytes(),
			State: mcptask.InputState(d.string()), Response: d.bytes(), Error: d.error(),
		})
		in := &inputs[len(inputs)-1]
		flags := d.byte()
		in.Fetched, in.Parked = flags&1 != 0, flags&2 != 0
		if flags&4 != 0 {
			in.Nonce = d.string()
		}
	}
	return inputs, d.finish()
}

// encodeFlags encodes up to eight answers to a question as bits, the first as the lowest.
func encodeFlags(answers ...bool) (flags byte) {
	for i, yes := range answers {
		if yes {
			flags |= 1 << i
		}
	}
	return flags
}

// shortBody is how many bytes a body may have that is stored in the row of its task. The rows of a
// database are in pages of 4 or 8 KiB, and PostgreSQL stores a row of over 2 kB in pieces.
const shortBody = 768

// SplitBody returns a body as the row of its task stores it, and as the body's own table does. One
// of them is nil at least.
func SplitBody(body []byte) (short, long []byte) {
	switch {
	case len(body) == 0:
		return nil, nil
	case len(body) > shortBody:
		return nil, body
	}
	return body, nil
}

// EncodeOutcome encodes the result and the error of an outcome. It returns nil if there is none.
func EncodeOutcome(o *mcptask.Outcome) []byte {
	if o == nil {
		return nil
	}
	b := make([]byte, 0, 16+len(o.Result))
	b = append(b, codecVersion)
	b = appendBytes(b, o.Result)
	return appendError(b, o.Error)
}

// DecodeOutcome sets the result and the error of an outcome. The outcome shares the bytes.
func DecodeOutcome(b []byte, o *mcptask.Outcome) error {
	d := newDecoder(b)
	o.Result, o.Error = d.bytes(), d.error()
	return d.finish()
}

// EncodeChanges encodes news for other processes.
func EncodeChanges(changes []mcptask.Change) []byte {
	b := []byte{codecVersion}
	b = binary.AppendUvarint(b, uint64(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = append(b, encodeFlags(c.Free, c.Missed))
		b = appendString(b, c.ID)
		b = binary.AppendVarint(b, c.Version)
		b = appendString(b, string(c.Phase))
	}
	return b
}

// DecodeChanges returns the news that EncodeChanges has encoded.
func DecodeChanges(b []byte) ([]mcptask.Change, error) {
	d := newDecoder(b)
	var changes []mcptask.Change
	for range d.count() {
		flags := d.byte()
		changes = append(changes, mcptask.Change{
			Free: flags&1 != 0, Missed: flags&2 != 0,
			ID: d.string(), Version: d.varint(), Phase: mcptask.Phase(d.string()),
		})
	}
	return changes, d.finish()
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendBytes appends bytes that may be nil: 0, or one more than the length.
func appendBytes(b, content []byte) []byte {
	if content == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(content))+1), content...)
}

// appendError appends an error that may be nil.
func appendError(b []byte, e *mcptask.Error) []byte {
	if e == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendVarint(b, int64(e.Code))
	b = appendString(b, e.Message)
	return appendBytes(b, e.Data)
}

// decoder reads encoded bytes. After a fault it reads zeros.
type decoder struct {
	version byte
	rest    []byte
	bad     bool
}

func newDecoder(b []byte) *decoder {
	d := &decoder{rest: b}
	d.version = d.byte()
	d.bad = d.bad || d.version != codecVersion
	return d
}

// finish returns an error unless all bytes were read without a fault.
func (d *decoder) finish() error {
	if d.version > codecVersion {
		return newerError(d.version)
	}
	if d.bad || len(d.rest) > 0 {
		return errCorrupt
	}
	return nil
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.take(uint64(max(n, 0))); n <= 0 {
		d.bad = true
		return 0
	}
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if d.take(uint64(max(n, 0))); n <= 0 {
		d.bad = true
		return 0
	}
	return v
}

// count returns how many elements follow. Each has a byte at least.
func (d *decoder) count() int {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.rest)) || n > math.MaxInt32 {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.take(d.uvarint())) }

// bytes returns what appendBytes has appended.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	if n == 1 {
		return []byte{}
	}
	return d.take(n - 1)
}

func (d *decoder) error() *mcptask.Error {
	if d.byte() == 0 {
		return nil
	}
	return &mcptask.Error{Code: int(d.varint()), Message: d.string(), Data: d.bytes()}
}
