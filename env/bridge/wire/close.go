package wire

// maxReason is the longest reason that a close frame holds.
const maxReason = 123

var reasons = map[int]string{
	CloseBye:          "bye",
	CloseDraining:     "the server ends: connect again later, or to another; sessions do not survive",
	CloseProtocol:     "messages cannot be read: check that they are in the encoding that welcome granted",
	CloseWrongType:    "binary messages for gbp.v1.msgpack, text for gbp.v1.json: connect again with the other one",
	CloseTooLarge:     "a message is larger than limits.frame_in of welcome (64 KiB before it): send less at once",
	CloseInternal:     "a mistake in the server, which logged it: connect again",
	CloseBadHello:     "the first message must be hello with id 1, proto, client, enc and feat: correct it",
	CloseUnauthorized: "no token, or a wrong one: send Authorization: Bearer TOKEN, or auth in hello",
	CloseNoVersion:    "no common version or encoding: see proto and enc, and update the client or the server",
	CloseHelloTimeout: "hello did not come in time: send it as soon as the connection stands",
	CloseTakenOver:    "another connection resumed this session: use that one",
	CloseExpired:      "no such session, or its time is over: connect without resume, and open anew",
	CloseCapacity:     "as many sessions as the server holds: close one, or try again later",
	CloseNotNow:       "the server is about to end and takes no new sessions: connect to another, or later",
}

// CloseReason is what a close frame of the given code says where the server has nothing more exact to say; it tells
// people what to do. "" = no code of the protocol.
func CloseReason(code int) string { return reasons[code] }

// CutReason is s cut to what a close frame holds, at a rune's end.
func CutReason(s string) string {
	if len(s) <= maxReason {
		return s
	}
	n := 0
	for i := range s {
		if i > maxReason {
			break
		}
		n = i
	}
	return s[:n]
}
