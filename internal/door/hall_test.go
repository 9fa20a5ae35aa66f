package door

import "testing"

func TestNeighboursOfASubnetShareAnAddress(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"[2001:db8:1:2::1]:5":   "[2001:db8:1:2:ffff::1]:6",
		"127.0.0.1:1":           "127.0.0.1:2",
		"[::ffff:10.0.0.1]:1":   "10.0.0.1:9",
		"[fe80::1%lo]:1":        "[fe80::2%lo]:1",
		"not an address at all": "neither is this",
	} {
		if neighbourhood(addr(a)) != neighbourhood(addr(b)) {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	if neighbourhood(addr("10.0.0.1:1")) == neighbourhood(addr("10.0.0.2:1")) ||
		neighbourhood(addr("[2001:db8:1:2::1]:5")) == neighbourhood(addr("[2001:db8:1:3::1]:5")) {
		t.Error("different networks are one")
	}
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }
