package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
	"clustergym/internal/rng"
)

// Target is the server to check.
type Target struct {
	URL   string // ws://host:port or wss://host:port
	Token string // a token with role env; empty = the server asks for none
	TLS   *tls.Config
	// Env is the id of the environment to play. Its actions must be discrete (one factor or several), and its episodes
	// must end under random legal play.
	Env    string
	Kwargs map[string]any
	// Steps is how many steps an episode may take to end; 0 = 2000.
	Steps int
	// HelloTimeout is the server's limit; 0 skips the claim about it.
	HelloTimeout time.Duration
	// Wait bounds every single wait; 0 = 5 s.
	Wait time.Duration
}

// claims lists the parts of the protocol, in the order in which they are checked.
var claims = []struct {
	name  string
	check func(*suite)
}{
	{"welcome is complete", (*suite).welcomeIsComplete},
	{"unknown keys and features are ignored", (*suite).unknownKeysAreIgnored},
	{"a bad hello closes the connection", (*suite).badHellosAreClosed},
	{"hello needs a version and an encoding in common", (*suite).versionsMustOverlap},
	{"a late hello closes the connection", (*suite).helloMustComeInTime},
	{"a missing or wrong token is refused", (*suite).tokensAreAskedFor},
	{"a message of the wrong websocket type closes the connection", (*suite).messageTypesAreKept},
	{"unreadable frames are reported, and three in a row close the connection", (*suite).unreadableFramesAreCounted},
	{"malformed values and false lengths are refused", (*suite).lyingLengthsAreRefused},
	{"an oversize message closes the connection", (*suite).oversizeFramesClose},
	{"request ids must increase", (*suite).idsIncrease},
	{"every request is answered once, in order", (*suite).answersComeOnceInOrder},
	{"requests beyond the limit inflight are busy", (*suite).theWindowIsBounded},
	{"unknown operations are refused", (*suite).unknownOperations},
	{"bye ends the session", (*suite).byeEndsTheSession},
	{"the HTTP pages answer", (*suite).sidecarAnswers},

	{"open checks its fields", (*suite).openChecksItsFields},
	{"handles open and close", (*suite).handlesOpenAndClose},
	{"the limits handles and envs hold", (*suite).openIsBounded},
	{"two clients do not affect each other", (*suite).clientsDoNotMeet},
	{"a vanished client frees its session", (*suite).vanishedClientsFreeTheirPlace},

	{"a step needs a reset first", (*suite).stepsNeedAReset},
	{"a reset begins an episode", (*suite).resetsBeginEpisodes},
	{"a partial reset leaves the other environments alone", (*suite).partialResetsLeaveOthers},
	{"bad ids and masks of rows are refused", (*suite).badRowsAreRefused},
	{"bad seeds are refused", (*suite).badSeedsAreRefused},
	{"seeds decide the episodes", (*suite).seedsAreHandedOn},
	{"bad actions change nothing", (*suite).badActionsChangeNothing},
	{"masked actions follow the field invalid", (*suite).maskedActionsFollowThePolicy},
	{"observations are inside their space", (*suite).observationsLieInTheirSpace},
	{"info has what open asked for", (*suite).infoCarriesWhatWasAsked},

	{"autoreset next_step shows the last observation, then the first", (*suite).nextStep},
	{"autoreset same_step shows both at once", (*suite).sameStep},
	{"autoreset disabled waits for a reset", (*suite).disabled},

	{"all encodings give the same values", (*suite).encodingsMeanTheSame},
	{"a row does not depend on its batch", (*suite).rowsDoNotDependOnTheBatch},
	{"send and recv give what step gives", (*suite).sendAndRecv},
	{"a restored snapshot continues identically", (*suite).snapshotsContinue},
	{"a damaged snapshot changes nothing", (*suite).brokenSnapshotsChangeNothing},
	{"only listed methods can be called", (*suite).callsAreFromAList},
	{"render gives text or pixels", (*suite).picturesCome},

	{"a lost session can be resumed", (*suite).lostSessionsResume},
	{"a repeated step is done once", (*suite).stepsHappenOnce},
	{"a second connection takes the session over", (*suite).secondAttachTakesOver},
	{"shared memory has what would be sent", (*suite).sharedMemoryShowsTheSame},
	{"an ended session cannot be resumed", (*suite).goneSessionsStayGone},
}

// suite is the state of checking one claim.
type suite struct {
	Target
	ctx   context.Context // ends the claim: every connection is closed then
	base  *url.URL        // http(s)://host:port
	draw  *rand.Rand
	conns []*conn
	where string // begins the text of a failure
}

// part names the part of the claim that is checked next.
func (s *suite) part(format string, args ...any) { s.where = fmt.Sprintf(format, args...) }

// patience is how many times Target.Wait one claim may take. Single waits are bounded by Target.Wait; this bounds the
// claim against a server that sends without end.
const patience = 60

// verify checks one claim and closes its connections.
func verify(ctx context.Context, target Target, check func(*suite)) error {
	s, err := newSuite(target)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience*s.Wait)
	defer cancel()
	s.ctx = limited
	defer s.leave()
	err = attempt(func() { check(s) })
	_, skipped := errors.AsType[skip](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("the claim was not decided within %v: %w", patience*s.Wait, err)
	case err != nil && !skipped && s.where != "":
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return err
}

func newSuite(target Target) (*suite, error) {
	u, err := target.address()
	if err != nil {
		return nil, err
	}
	s := &suite{Target: target, base: u, draw: rng.Stream(1, "conformance")}
	if s.Wait == 0 {
		s.Wait = 5 * time.Second
	}
	if s.Steps == 0 {
		s.Steps = 2000
	}
	return s, nil
}

// Validate reports a URL that cannot be read.
func (t Target) Validate() error {
	_, err := t.address()
	return err
}

// address returns the target's URL as http(s)://host:port.
func (t Target) address() (*url.URL, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" ||
		strings.TrimSuffix(u.Path, "/") != "" && u.Path != "/v1/ws" {
		return nil, fmt.Errorf("URL %q, want ws://host:port or wss://host:port", t.URL)
	}
	u.Scheme = "http" + strings.TrimPrefix(u.Scheme, "ws")
	u.Path = ""
	return u, nil
}

// leave ends every session, so that none takes a place while the next claims are checked.
func (s *suite) leave() {
	for _, c := range s.conns {
		c.leave()
	}
}

// allFeatures lists the features of the protocol.
var allFeatures = []string{"async", "resume", "snapshot", "render", "shm"}

// has reports whether the feature was granted.
func (c *conn) has(feature string) bool {
	list, _ := c.welcome.Strs("feat", nil)
	return slices.Contains(list, feature)
}

// grants skips the claim unless the feature was granted.
func (c *conn) grants(feature string) {
	if !c.has(feature) {
		skipf("the server does not grant %s", feature)
	}
}

// mostInflight is the largest limit inflight that the suite fills with requests.
const mostInflight = 256

// window returns the limit inflight, or a skip where filling it takes too long.
func (c *conn) window() int {
	n := c.limit("inflight")
	if !(n >= 1) {
		failf("limit inflight is %v, want a number above 0", n)
	}
	if n > mostInflight {
		skipf("%v requests at once are too many to try", n)
	}
	return int(n)
}

// limit returns a number of the welcome, 0 where it is missing.
func (c *conn) limit(key string) float64 {
	m, _ := c.welcome.Sub("limits")
	v, _ := compare.Number(m.Get(key))
	return v
}

// m makes a map of alternating keys and values.
func m(kv ...any) wire.Map { return wire.MapOf(kv...) }
