package operate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/bridge/conformance"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/envs"
)

// check is serve --check: it serves nothing, and holds another server against the protocol.
type check struct {
	url, env, ca string
	door         *options.Door // has the values of --token-file, --tls-cert, --tls-key and --hello-timeout
}

// checkFlags are the flags of serve that count with --check.
var checkFlags = []string{"check", "check-env", "ca", "token-file", "tls-cert", "tls-key", "hello-timeout", "json",
	"help"}

// flags adds the flags of the check to those of a server.
func (k *check) flags(c *cobra.Command, d *options.Door) {
	k.door = d
	f := c.Flags()
	f.StringVar(&k.url, "check", "",
		"serve nothing: check the server at `URL`, ws://HOST:PORT or wss://HOST:PORT, against the protocol")
	f.StringVar(&k.env, "check-env", "InvalidAction-v1",
		"`ID` of the environment that --check plays: discrete actions, episodes that end under random play")
	f.StringVar(&k.ca, "ca", "", "PEM `FILE` of the authorities that --check trusts with wss://, in place of the system's")
	cli.Needs(c, []string{"check"}, "check-env", "ca")
	f.VisitAll(func(g *pflag.Flag) {
		if !slices.Contains(checkFlags, g.Name) {
			cli.Apart(c, []string{"check"}, g.Name)
		}
	})
}

// target reads the files that the flags name.
func (k *check) target(c *cobra.Command) (conformance.Target, error) {
	t := conformance.Target{URL: k.url, Env: k.env}
	if err := t.Validate(); err != nil {
		return t, fault.Mistakef("--check: %w", err)
	}
	if c.Flags().Changed("hello-timeout") {
		if k.door.Cfg.HelloTimeout <= 0 {
			return t, fault.Mistakef("--hello-timeout: got %v, want a time above 0s", k.door.Cfg.HelloTimeout)
		}
		t.HelloTimeout = k.door.Cfg.HelloTimeout
	}
	var err error
	if t.Token, err = k.token(); err != nil {
		return t, err
	}
	t.TLS, err = k.tls()
	return t, err
}

// token is the first of the token file that may open sessions; the role env comes before admin, which may do more.
func (k *check) token() (string, error) {
	if k.door.TokenFile == "" {
		return "", nil
	}
	tokens, _, err := envs.ReadTokens(k.door.TokenFile)
	if err != nil {
		return "", err
	}
	for _, role := range []server.Role{server.RoleEnv, server.RoleAdmin} {
		if i := slices.IndexFunc(tokens, func(t server.Token) bool { return t.Role == role }); i >= 0 {
			return tokens[i].Secret, nil
		}
	}
	return "", fault.Mistakef("--token-file: %s has no token of role env or admin, want one that opens sessions",
		k.door.TokenFile)
}

// tls is how the check speaks with wss://: whom it trusts, and the certificate that it shows.
func (k *check) tls() (*tls.Config, error) {
	cert, key := k.door.Cfg.TLSCert, k.door.Cfg.TLSKey
	switch {
	case k.ca == "" && cert == "" && key == "":
		return nil, nil // as the system has it
	case (cert == "") != (key == ""):
		return nil, fault.Mistakef("--tls-cert and --tls-key go together: want those that --check shows")
	}
	if !strings.HasPrefix(k.url, "wss:") {
		return nil, fault.Mistakef("--check: got %s with certificates, want wss://HOST:PORT", k.url)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.ca != "" {
		pem, err := ordinary.Read(k.ca, ordinary.Settings)
		if err != nil {
			return nil, fault.Mistakef("--ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.Mistakef("--ca: %s holds no certificate in PEM", k.ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fault.Mistakef("--tls-cert %s, --tls-key %s: %w", cert, key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// Verdict is one claim's outcome in the JSON document.
type Verdict struct {
	Claim   string  `json:"claim"`
	Verdict string  `json:"verdict"` // pass, fail or skip
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
}

// run checks the server and prints one line for each claim as soon as it is decided.
func (k *check) run(a *cli.App, c *cobra.Command) error {
	t, err := k.target(c)
	if err != nil {
		return err
	}
	var all []Verdict
	count := map[string]int{}
	begun := a.Now()
	err = conformance.Check(c.Context(), t, func(v conformance.Verdict) {
		d := Verdict{Claim: v.Claim, Verdict: "pass", Seconds: v.Took.Round(time.Millisecond).Seconds()}
		switch {
		case v.Err != nil:
			d.Verdict, d.Reason = "fail", OneLine(v.Err.Error())
		case v.Skipped != "":
			d.Verdict, d.Reason = "skip", OneLine(v.Skipped)
		}
		count[d.Verdict]++
		all = append(all, d)
		line := d.Verdict + "  " + d.Claim
		if d.Reason != "" {
			line += ": " + d.Reason
		}
		if !cli.AsJSON(c) {
			a.Printf("%s\n", line)
		}
	})
	if refused, ok := errors.AsType[*wire.Error](err); ok && refused.Code == wire.UnknownEnv {
		return fault.Mistakef("--check-env: %w", err)
	}
	if err != nil {
		return err
	}
	if cli.AsJSON(c) {
		err = a.JSON(struct {
			URL     string    `json:"url"`
			Env     string    `json:"env"`
			Claims  []Verdict `json:"claims"`
			Passed  int       `json:"passed"`
			Failed  int       `json:"failed"`
			Skipped int       `json:"skipped"`
		}{t.URL, t.Env, all, count["pass"], count["fail"], count["skip"]})
		if err != nil {
			return err
		}
	} else {
		a.Printf("%d claims: %d hold, %d fail, %d skipped; %v\n", len(all), count["pass"], count["fail"], count["skip"],
			a.Now().Sub(begun).Round(100*time.Millisecond))
	}
	if n := count["fail"]; n > 0 {
		return fmt.Errorf("%s breaks %d of %d claims of the protocol", t.URL, n, len(all))
	}
	return nil
}

// OneLine is s on one line: the text of a reason may come from the server, control characters included.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
