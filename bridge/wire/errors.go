package wire

import "fmt"

// Code is the kind of an error reply. Clients decide by it.
type Code string

// The error codes of the protocol.
const (
	BadFrame         Code = "bad_frame"
	BadRequest       Code = "bad_request"
	UnknownOp        Code = "unknown_op"
	Unauthorized     Code = "unauthorized"
	Forbidden        Code = "forbidden"
	ProtoMismatch    Code = "proto_mismatch"
	UnknownEnv       Code = "unknown_env"
	BadKwargs        Code = "bad_kwargs"
	BadHandle        Code = "bad_handle"
	BadSeed          Code = "bad_seed"
	BadAction        Code = "bad_action"
	NeedsReset       Code = "needs_reset"
	NotPending       Code = "not_pending"
	Busy             Code = "busy"
	Capacity         Code = "capacity"
	TooLarge         Code = "too_large"
	Timeout          Code = "timeout"
	EnvFault         Code = "env_fault"
	Unsupported      Code = "unsupported"
	SnapshotMismatch Code = "snapshot_mismatch"
	Draining         Code = "draining"
	Internal         Code = "internal"
)

// The codes with which a connection is closed. Codes below 4000 are those of RFC 6455.
const (
	CloseBye          = 1000
	CloseDraining     = 1001
	CloseProtocol     = 1002
	CloseWrongType    = 1003
	CloseTooLarge     = 1009
	CloseInternal     = 1011
	CloseBadHello     = 4400
	CloseUnauthorized = 4401
	CloseNoVersion    = 4406
	CloseHelloTimeout = 4408
	CloseTakenOver    = 4409
	CloseExpired      = 4410
	CloseCapacity     = 4429
	CloseNotNow       = 4503
)

// Error is the content of an error reply. It is about the request, or about the frame if Code is BadFrame.
type Error struct {
	Code  Code
	Msg   string
	Retry bool   // the same request may succeed later
	Env   []int  // indices of the environments concerned, within the handle
	Want  string // what would be right, "" if Msg says it
	Got   string
}

func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Msg
	if e.Got != "" {
		s += "; got " + e.Got
	}
	if e.Want != "" {
		s += "; want " + e.Want
	}
	return s
}

// Errorf returns an Error of the given code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Reply writes the error reply e to request re.
func (e *Error) Reply(w *Writer, re uint32) {
	m := MapOf("code", string(e.Code), "msg", e.Msg, "retry", e.Retry)
	if len(e.Env) > 0 {
		m.Add("env", e.Env)
	}
	if e.Want != "" {
		m.Add("want", e.Want)
	}
	if e.Got != "" {
		m.Add("got", e.Got)
	}
	w.Answer(re, OpError, m)
}

// ErrorOf reads an error reply. Fields that are missing or of a wrong type stay empty.
func ErrorOf(m Map) *Error {
	e := &Error{Code: Internal}
	if s, ok := m.Get("code").(string); ok {
		e.Code = Code(s)
	}
	e.Msg, _ = m.Get("msg").(string)
	e.Retry, _ = m.Get("retry").(bool)
	e.Want, _ = m.Get("want").(string)
	e.Got, _ = m.Get("got").(string)
	rows, _ := m.Ints("env")
	for _, i := range rows {
		e.Env = append(e.Env, int(i))
	}
	return e
}
