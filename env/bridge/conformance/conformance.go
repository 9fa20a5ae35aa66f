package conformance

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"clustergym/env/bridge/wire"
	"clustergym/internal/rng"
)

// Target is the server under test.
type Target struct {
	URL   string // ws://host:port or wss://host:port
	Token string // with role env; empty = the server asks for none
	TLS   *tls.Config
	// Env is the environment played; its actions must be discrete (one factor or several) and its episodes must end
	// under random legal play.
	Env    string
	Kwargs map[string]any
	// Steps bounds how long an episode may take to end; 0 = 2000.
	Steps int
	// HelloTimeout is the server's; 0 skips the claim about it.
	HelloTimeout time.Duration
	// Wait bounds every single wait; 0 = 5 s.
	Wait time.Duration
}

// claims are the parts of the protocol.
var claims = []struct {
	name  string
	check func(*suite) error
}{
	{"welcome says what was agreed on", (*suite).welcomeIsComplete},
	{"unknown keys and features are ignored", (*suite).unknownKeysAreIgnored},
	{"a connection without a proper hello is closed", (*suite).badHellosAreClosed},
	{"versions must overlap", (*suite).versionsMustOverlap},
	{"hello must come in time", (*suite).helloMustComeInTime},
	{"tokens are asked for", (*suite).tokensAreAskedFor},
	{"messages are of the type agreed on", (*suite).messageTypesAreKept},
	{"unreadable frames are told and then not tolerated", (*suite).unreadableFramesAreCounted},
	{"lengths that lie are refused", (*suite).lyingLengthsAreRefused},
	{"oversize frames close", (*suite).oversizeFramesClose},
	{"ids increase strictly", (*suite).idsIncrease},
	{"every request is answered once, in order", (*suite).answersComeOnceInOrder},
	{"too many requests at once are busy", (*suite).theWindowIsBounded},
	{"unknown operations are refused", (*suite).unknownOperations},
	{"bye ends the session", (*suite).byeEndsTheSession},
	{"the sidecar answers", (*suite).sidecarAnswers},

	{"open checks its fields", (*suite).openChecksItsFields},
	{"handles open and close", (*suite).handlesOpenAndClose},
	{"handles and environments are bounded", (*suite).openIsBounded},
	{"two clients do not meet", (*suite).clientsDoNotMeet},
	{"a client that vanishes frees its place", (*suite).vanishedClientsFreeTheirPlace},

	{"steps need a reset", (*suite).stepsNeedAReset},
	{"resets begin episodes", (*suite).resetsBeginEpisodes},
	{"a reset of some leaves the others", (*suite).partialResetsLeaveOthers},
	{"rows that do not exist are refused", (*suite).badRowsAreRefused},
	{"seeds that make no sense are refused", (*suite).badSeedsAreRefused},
	{"seeds are handed on", (*suite).seedsAreHandedOn},
	{"bad actions change nothing", (*suite).badActionsChangeNothing},
	{"masked actions follow the policy", (*suite).maskedActionsFollowThePolicy},
	{"observations lie in their space", (*suite).observationsLieInTheirSpace},
	{"info carries what was asked for", (*suite).infoCarriesWhatWasAsked},

	{"next_step shows the end, then the beginning", (*suite).nextStep},
	{"same_step does both at once", (*suite).sameStep},
	{"disabled waits for a reset", (*suite).disabled},

	{"encodings mean the same", (*suite).encodingsMeanTheSame},
	{"rows do not depend on the batch", (*suite).rowsDoNotDependOnTheBatch},
	{"send and recv give what step gives", (*suite).sendAndRecv},
	{"snapshots continue identically", (*suite).snapshotsContinue},
	{"broken snapshots change nothing", (*suite).brokenSnapshotsChangeNothing},
	{"calls are from a list", (*suite).callsAreFromAList},
	{"pictures are text or pixels", (*suite).picturesCome},

	{"a lost session is taken up again", (*suite).lostSessionsResume},
	{"a step happens exactly once", (*suite).stepsHappenOnce},
	{"a second attach takes over", (*suite).secondAttachTakesOver},
	{"shared memory shows what would be sent", (*suite).sharedMemoryShowsTheSame},
	{"sessions that are gone stay gone", (*suite).goneSessionsStayGone},
}

// Run holds the server against every claim, one subtest each.
func Run(t *testing.T, target Target) {
	t.Helper()
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			err := verify(target, c.check)
			var s skip
			if errors.As(err, &s) {
				t.Skip(string(s))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// skip is the reason for which a claim does not apply.
type skip string

func (s skip) Error() string { return string(s) }

// suite is the state of one claim.
type suite struct {
	Target
	base  *url.URL // http(s)://host:port
	draw  *rand.Rand
	conns []*conn
}

// verify checks one claim and drops its connections.
func verify(target Target, check func(*suite) error) error {
	u, err := url.Parse(target.URL)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "ws") {
		return fmt.Errorf("URL %q, want ws://host:port or wss://host:port", target.URL)
	}
	u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	u.Path = ""
	s := &suite{Target: target, base: u, draw: rng.Stream(1, "conformance")}
	if s.Wait == 0 {
		s.Wait = 5 * time.Second
	}
	if s.Steps == 0 {
		s.Steps = 2000
	}
	defer func() {
		for _, c := range s.conns {
			c.leave()
		}
	}()
	return check(s)
}

// allFeatures are those of the protocol.
var allFeatures = []string{"async", "resume", "snapshot", "render", "graph", "shm"}

// has says whether the feature was granted.
func (c *conn) has(feature string) bool {
	list, _ := c.welcome.Strs("feat", nil)
	for _, f := range list {
		if f == feature {
			return true
		}
	}
	return false
}

// limit is a number of the welcome, 0 where it is missing.
func (c *conn) limit(key string) float64 {
	m, _ := c.welcome.Sub("limits")
	v, _ := number(m.Get(key))
	return v
}

// number is v as a float64.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// first is the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// m makes a map of keys and values.
func m(kv ...any) wire.Map {
	out := wire.Map{}
	for i := 0; i < len(kv); i += 2 {
		out = append(out, wire.Pair{Key: kv[i].(string), Value: kv[i+1]})
	}
	return out
}
