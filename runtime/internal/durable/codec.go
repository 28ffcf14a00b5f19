package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The parts of a record that no query looks at are stored as bytes: lengths and contents one after
// the other. Every byte is kept, and nil stays nil. JSON would change both.

// codecVersion is the first byte of each encoding. A later version of this package may write another, and reads this
// one too.
const codecVersion = 1

// errCorrupt says that stored bytes have changed since they were encoded.
var errCorrupt = errors.New("the stored bytes are damaged")

// newerError says that stored bytes have a version that this package does not read.
type newerError byte

func (e newerError) Error() string {
	return fmt.Sprintf("the stored bytes have format %d, and this program reads %d: a newer version of mcptask has written them, or they are damaged", byte(e), codecVersion)
}

// EncodeTerms encodes the short fields that are fixed at a record's creation and have no column: Revision, ExternalID,
// CanAsk, Poll and Trace. Arguments, which may be long, are stored as they are.
func EncodeTerms(r *taskstore.Record) []byte {
	return encode(64+len(r.Revision)+len(r.ExternalID)+len(r.Trace)+32*len(r.CanAsk), r, (*coder).terms)
}

// DecodeTerms sets in a record the fields that EncodeTerms has encoded. It sets nothing if it returns an error.
func DecodeTerms(b []byte, r *taskstore.Record) error { return decode(b, r, (*coder).terms) }

func (c *coder) terms(r *taskstore.Record) {
	c.string(&r.Revision)
	c.string(&r.ExternalID)
	codeList(c, &r.CanAsk, c.string)
	var retention int64 // earlier: from the task's end
	c.int(&retention)
	c.int((*int64)(&r.Poll))
	c.string(&r.Trace)
}

// EncodeMark encodes the Nonce of a record, and its Claim without the worker. It returns no bytes if the record has
// none of it, as those of the first versions of the schema.
func EncodeMark(r *taskstore.Record) []byte {
	if r.Nonce == "" && (r.Claim == taskstore.Claim{Worker: r.Claim.Worker}) {
		return []byte{}
	}
	return encode(8+len(r.Nonce)+len(r.Claim.State)+len(r.Claim.Nonce), r, (*coder).mark)
}

// DecodeMark sets in a record the fields that EncodeMark has encoded.
func DecodeMark(b []byte, r *taskstore.Record) error {
	if len(b) == 0 {
		return nil
	}
	err := decode(b, r, (*coder).mark)
	if r.Claim.State == "left" { // by an earlier version, for any server
		r.Claim.State = taskstore.ClaimWaiting
	}
	return err
}

func (c *coder) mark(r *taskstore.Record) {
	c.string(&r.Nonce)
	c.string((*string)(&r.Claim.State))
	c.string(&r.Claim.Nonce)
}

// EncodeInputs encodes the questions of a record.
func EncodeInputs(inputs []taskstore.Input) []byte { return encode(64, &inputs, (*coder).inputs) }

// DecodeInputs returns the questions that EncodeInputs has encoded. They share the bytes.
func DecodeInputs(b []byte) (inputs []taskstore.Input, err error) {
	err = decode(b, &inputs, (*coder).inputs)
	return inputs, err
}

func (c *coder) inputs(inputs *[]taskstore.Input) {
	codeList(c, inputs, func(in *taskstore.Input) {
		c.string(&in.Key)
		c.string(&in.Method)
		c.bytes((*[]byte)(&in.Params))
		c.bytes((*[]byte)(&in.Schema))
		c.string((*string)(&in.State))
		c.bytes((*[]byte)(&in.Response))
		c.error(&in.Error)
		hasNonce := in.Nonce != ""
		if c.flags(&in.Fetched, &in.Parked, &hasNonce); hasNonce {
			c.string(&in.Nonce)
		}
	})
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
func EncodeOutcome(o *taskstore.Outcome) []byte {
	if o == nil {
		return nil
	}
	return encode(16+len(o.Result), o, (*coder).outcome)
}

// DecodeOutcome sets the result and the error of an outcome. The outcome shares the bytes.
func DecodeOutcome(b []byte, o *taskstore.Outcome) error { return decode(b, o, (*coder).outcome) }

func (c *coder) outcome(o *taskstore.Outcome) {
	c.bytes((*[]byte)(&o.Result))
	c.error(&o.Error)
}

// EncodeStep encodes a step without its name.
func EncodeStep(s *taskstore.Step) []byte { return encode(24+len(s.Value), s, (*coder).step) }

// DecodeStep sets in a step what EncodeStep has encoded. The step shares the bytes.
func DecodeStep(b []byte, s *taskstore.Step) error {
	return checkStep(s, decode(b, s, (*coder).step))
}

// checkStep returns the error of decoding a step.
func checkStep(s *taskstore.Step, err error) error {
	if err == nil && !isInJSON(s.At) {
		err = errCorrupt
	}
	if err != nil {
		return newUnreadable("its step "+strconv.Quote(s.Name), err)
	}
	return nil
}

// StepHead is how many of the bytes of EncodeStep DecodeStepHead needs.
const StepHead = 512

// DecodeStepHead returns the summary of a step from the first StepHead bytes that EncodeStep has encoded.
func DecodeStepHead(b []byte, name string) (taskstore.StepSummary, error) {
	var size uint64
	s := taskstore.Step{Name: name}
	err := decode(b, &s, func(c *coder, s *taskstore.Step) {
		c.stepHead(s)
		size = max(c.number(0), 1) - 1
		c.take(uint64(len(c.b)))
	})
	return taskstore.StepSummary{Name: name, Kind: s.Kind, ValueSize: int(min(size, math.MaxInt32)), At: s.At, Attempt: s.Attempt}, checkStep(&s, err) //nolint:gosec // it fits
}

func (c *coder) step(s *taskstore.Step) {
	c.stepHead(s)
	c.bytes((*[]byte)(&s.Value))
}

// stepHead has what a step has before its value.
func (c *coder) stepHead(s *taskstore.Step) {
	c.string((*string)(&s.Kind))
	at, attempt := Micros(s.At), int64(s.Attempt)
	c.int(&at)
	c.int(&attempt)
	s.At, s.Attempt = Time(at), int(attempt)
}

// EncodeChanges encodes news for other processes.
func EncodeChanges(changes []taskstore.Change) []byte { return encode(64, &changes, (*coder).changes) }

// DecodeChanges returns the news that EncodeChanges has encoded.
func DecodeChanges(b []byte) (changes []taskstore.Change, err error) {
	err = decode(b, &changes, (*coder).changes)
	return changes, err
}

func (c *coder) changes(changes *[]taskstore.Change) {
	codeList(c, changes, func(change *taskstore.Change) {
		c.flags(&change.Free, &change.Missed)
		c.string(&change.ID)
		c.int(&change.Version)
		c.string((*string)(&change.Phase))
	})
}

// coder encodes values or decodes them. Its methods do either, so that each form is described once. An encoder only
// reads the values. After a fault, a decoder reads zeros.
type coder struct {
	decodes bool
	b       []byte // the bytes encoded so far, or left to decode
	bad     bool
}

// encode returns the encoded form of v, of about a size.
func encode[T any](size int, v *T, code func(*coder, *T)) []byte {
	c := &coder{b: append(make([]byte, 0, size), codecVersion)}
	code(c, v)
	return c.b
}

// decode sets v to the value that b encodes. It sets nothing if it returns an error.
func decode[T any](b []byte, v *T, code func(*coder, *T)) error {
	if len(b) > 0 && b[0] > codecVersion {
		return newerError(b[0])
	}
	c, decoded := &coder{decodes: true, b: b}, *v
	version := c.take(1)
	code(c, &decoded)
	if c.bad || len(c.b) > 0 || version[0] != codecVersion {
		return errCorrupt
	}
	*v = decoded
	return nil
}

// take returns the next n bytes.
func (c *coder) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	taken := c.b[:n:n]
	c.b = c.b[n:]
	return taken
}

// number encodes v and returns it, or returns the next number.
func (c *coder) number(v uint64) uint64 {
	if !c.decodes {
		c.b = binary.AppendUvarint(c.b, v)
		return v
	}
	v, n := binary.Uvarint(c.b)
	if c.take(uint64(max(n, 0))); n <= 0 {
		c.bad = true
		return 0
	}
	return v
}

// int has a number that may be negative.
func (c *coder) int(v *int64) {
	if !c.decodes {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	decoded, n := binary.Varint(c.b)
	if c.take(uint64(max(n, 0))); n <= 0 {
		c.bad, decoded = true, 0
	}
	*v = decoded
}

func (c *coder) string(s *string) {
	n := c.number(uint64(len(*s)))
	if c.decodes {
		*s = string(c.take(n))
	} else {
		c.b = append(c.b, *s...)
	}
}

// bytes has bytes that may be nil: 0, or one more than the length.
func (c *coder) bytes(b *[]byte) {
	var n uint64
	if *b != nil {
		n = uint64(len(*b)) + 1
	}
	switch n = c.number(n); {
	case !c.decodes:
		c.b = append(c.b, *b...)
	case n == 0:
		*b = nil
	case n == 1:
		*b = []byte{}
	default:
		*b = c.take(n - 1)
	}
}

// flags has up to eight flags in a byte.
func (c *coder) flags(flags ...*bool) {
	if c.decodes {
		if b := c.take(1); b != nil {
			for i, f := range flags {
				*f = b[0]&(1<<i) != 0
			}
		}
		return
	}
	var b byte
	for i, f := range flags {
		if *f {
			b |= 1 << i
		}
	}
	c.b = append(c.b, b)
}

// error has an error that may be nil.
func (c *coder) error(e **mcptask.Error) {
	isSet := *e != nil
	if c.flags(&isSet); !isSet {
		return
	}
	if c.decodes {
		*e = &mcptask.Error{}
	}
	code := int64((*e).Code)
	if c.int(&code); c.decodes {
		(*e).Code = int(code)
	}
	c.string(&(*e).Message)
	c.bytes((*[]byte)(&(*e).Data))
}

// codeList has a list, which comes back as nil if it is empty. Each element has a byte at least.
func codeList[T any](c *coder, list *[]T, code func(*T)) {
	n := c.number(uint64(len(*list)))
	if !c.decodes {
		for i := range *list {
			code(&(*list)[i])
		}
		return
	}
	*list = nil
	if n > uint64(len(c.b)) || n > math.MaxInt32 {
		c.bad = true
		return
	}
	for range n {
		if c.bad {
			return
		}
		var element T
		code(&element)
		*list = append(*list, element)
	}
}
