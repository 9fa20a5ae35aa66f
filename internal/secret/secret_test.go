package secret

import "testing"

func TestAddressesAreShownWithoutSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"nats://host:7777": "nats://host:7777", "nats://token@host:7777": "nats://xxxxx@host:7777",
		"tls://me:secret@host": "tls://xxxxx@host", "http://me:secret%@a": "an address that cannot be read",
	} {
		if got := Without(given); got != want {
			t.Errorf("%s is shown as %s, want %s", given, got, want)
		}
	}
}
