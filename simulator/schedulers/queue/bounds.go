package queue

import "clustergym/simulator/cluster"

// Bounds are what the reservations made in a pass say about those to come, since a plan only becomes fuller: a job that
// asks for no less and lasts no shorter than another has no place before it. If the placement is picky, that is so
// only of a job with the same request.
type Bounds struct {
	picky bool // the placement may refuse a gang and take one that asks for more
	all   []bound
}

type bound struct {
	req   cluster.Request
	lasts int64
	at    int64
}

// Begin begins a pass. picky: the placement may refuse a gang and take one that asks for more.
func (b *Bounds) Begin(picky bool) { b.picky, b.all = picky, b.all[:0] }

// under reports whether a job that asks for r for as long as lasts asks for no less than the bound's job. If the
// placement is picky, one that asks for more may have a place where the other has none (a gang that no node could hold
// when idle may be spread, and whether one could depends on types, cores and memory), so requests must be equal.
func (b *Bounds) under(k *bound, r *cluster.Request, lasts int64) bool {
	q := &k.req
	if b.picky {
		return k.lasts <= lasts && *q == *r
	}
	return k.lasts <= lasts && q.VC == r.VC && shaped(q, r) && (q.Types == 0 || r.Types != 0 && r.Types&^q.Types == 0) &&
		q.CPUMilli <= r.CPUMilli && q.MemBytes <= r.MemBytes &&
		(q.GPUs == r.GPUs || 0 < q.GPUs && q.GPUs < r.GPUs) && q.Milli <= r.Milli
}

// shaped reports whether r's GPUs are on no fewer nodes, with no fewer on each, than q's, as far as q says.
func shaped(q, r *cluster.Request) bool {
	if q.Each == 0 {
		return true
	}
	return r.Each >= q.Each && r.GPUs/r.Each >= q.GPUs/q.Each
}

// Of returns a time before which a job that asks for r for as long as lasts has no place.
func (b *Bounds) Of(r *cluster.Request, lasts int64) (at int64) {
	for i := range b.all {
		if k := &b.all[i]; k.at > at && b.under(k, r, lasts) {
			at = k.at
		}
	}
	return at
}

// Add notes that at is the first time at which a job that asks for r for as long as lasts has a place.
func (b *Bounds) Add(r *cluster.Request, lasts, at int64) {
	kept := b.all[:0]
	for _, k := range b.all {
		if k.at > at || k.lasts < lasts || !b.under(&bound{req: *r, lasts: lasts}, &k.req, k.lasts) {
			kept = append(kept, k)
		}
	}
	b.all = append(kept, bound{*r, lasts, at})
}
