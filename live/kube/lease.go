package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"clustergym/live"
)

// coordination is the API of leases.
const coordination = "/apis/coordination.k8s.io/v1"

// leasePatience is how long one request about a lease may take.
const leasePatience = 5 * time.Second

// Lease is a Lease object of coordination.k8s.io, by which programs on different machines agree on who holds jobs back.
// The object must be there: it is never created or deleted, so that get and patch of this one are all the rights it
// takes. Times are by the server's clock. It is not safe for concurrent use.
type Lease struct {
	c       *client
	path    string
	name    string // as NAMESPACE/NAME
	version string // that was read last
}

// lease is a Lease of the API, as far as it matters here.
type lease struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Holder *string    `json:"holderIdentity"`
		Renew  *time.Time `json:"renewTime"`
	} `json:"spec"`
}

// microTime is how times of leases are written.
const microTime = "2006-01-02T15:04:05.000000Z"

// OpenLease prepares a lease, name is NAMESPACE/NAME. It does not call the server yet.
func OpenLease(cfg Config, name string) (*Lease, error) {
	namespace, object, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || object == "" || strings.ContainsAny(name, " \n?#%") || strings.Contains(object, "/") {
		return nil, fmt.Errorf("lease %q, want NAMESPACE/NAME of a Lease object", name)
	}
	c, err := newClient(cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Lease{c: c, path: in(coordination, namespace, "leases/"+object), name: name}, nil
}

// String returns the lease's name, NAMESPACE/NAME.
func (l *Lease) String() string { return l.name }

// Read returns what the lease says and how long ago it was renewed, below 0 if the server's clock has been set back
// since; mark differs with each renewal. It fails with fs.ErrNotExist if no program has it.
func (l *Lease) Read() (age time.Duration, mark, text string, err error) {
	o, at, err := l.get()
	if err != nil {
		return 0, "", "", err
	}
	if o.Spec.Holder == nil || *o.Spec.Holder == "" {
		return 0, "", "", fmt.Errorf("%w: nobody has the lease %s", fs.ErrNotExist, l.name)
	}
	if o.Spec.Renew != nil {
		age, mark = at.Sub(*o.Spec.Renew), o.Spec.Renew.UTC().Format(time.RFC3339Nano)
	}
	return age, mark + " " + *o.Spec.Holder, *o.Spec.Holder, nil
}

func (l *Lease) get() (*lease, time.Time, error) {
	o := new(lease)
	at, err := l.call(http.MethodGet, l.path, nil, o)
	if errors.Is(err, errMissing) {
		err = fmt.Errorf("%w: there is no Lease %s, which deploy/kubernetes/gate.yaml has", live.ErrUnsupported, l.name)
	}
	if err != nil {
		return nil, at, err
	}
	l.version = o.Metadata.ResourceVersion
	return o, at, nil
}

// call sends a request, and returns the server's clock, or ours if it tells none. An answer that does not come in time
// means that the server cannot be reached.
func (l *Lease) call(method, path string, body, out any) (at time.Time, err error) {
	ctx, stop := context.WithTimeout(context.Background(), leasePatience)
	defer stop()
	at, err = l.c.call(ctx, method, path, nil, body, out)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", live.ErrUnreachable, err)
	}
	if at.IsZero() {
		at = time.Now()
	}
	return at, err
}

// Write writes text and the time, on the condition that the lease is as it was read last. A conflict says that somebody
// else was faster.
func (l *Lease) Write(text string) error {
	at, err := l.call(http.MethodGet, "/version", nil, nil) // what is read of the lease must not change
	if err != nil {
		return err
	}
	return l.patch(tree{"holderIdentity": text, "renewTime": at.UTC().Format(microTime)})
}

// Renew writes the time, if the lease still says text.
func (l *Lease) Renew(text string) error {
	o, at, err := l.get()
	if err != nil {
		return err
	}
	if o.Spec.Holder == nil || *o.Spec.Holder != text {
		return fmt.Errorf("%w: the lease %s is not ours any more", fs.ErrNotExist, l.name)
	}
	return l.patch(tree{"renewTime": at.UTC().Format(microTime)})
}

// Remove takes the lease from whoever has it, if it has not been renewed since it was read last.
func (l *Lease) Remove() error { return l.patch(tree{"holderIdentity": "", "renewTime": nil}) }

func (l *Lease) patch(spec tree) error {
	o := new(lease)
	_, err := l.call(http.MethodPatch, l.path, tree{"metadata": tree{"resourceVersion": l.version}, "spec": spec}, o)
	if err != nil {
		return err
	}
	l.version = o.Metadata.ResourceVersion
	return nil
}
