package budget

import (
	"fmt"

	"clustergym/bridge/wire"
)

// help says what makes something fit.
const help = "fewer environments, smaller settings, or a server with more memory"

// Refuse returns the error for need more bytes that the owner of a could not reserve. what names them: "4096
// environments of JobSelect-v1". The error can be retried if everything would fit an empty server.
func (a *Account) Refuse(what string, need int64) *wire.Error {
	all := a.Held() + need
	total := a.b.Total()
	if need < 0 || all > total {
		return &wire.Error{
			Code: wire.Capacity, Msg: what + " never fit this server", Got: "about " + Size(all),
			Want: fmt.Sprintf("at most its memory, %s: %s", Size(total), help),
		}
	}
	return &wire.Error{
		Code: wire.Capacity, Retry: true, Msg: "there is no memory left for " + what,
		Got:  fmt.Sprintf("about %s, and %s of %s are free", Size(all), Size(a.Held()+max(0, a.b.Free())), Size(total)),
		Want: help + "; or try again when others have left",
	}
}
