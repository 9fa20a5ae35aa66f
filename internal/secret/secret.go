// Package secret takes secrets out of what is shown.
package secret

import "net/url"

// Without returns an address as it may be shown: without a user and a password. A user alone can be a token.
func Without(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	return u.String()
}
