// Package demo is a pretended cluster as live.Cluster: it replays a history in accelerated time, so that steering and
// forecasts can be tried on a laptop.
//
// Jobs are submitted when they were, and run as long as they ran, on nodes that are given or guessed. The demo begins
// in the middle of the history, with the jobs that ran and waited at that moment. From then on its own scheduler starts
// jobs: first come, first served, with EASY back-filling by time limits, or as Backfill says. It honours ranks, holds,
// releases, starts on named nodes and requeues. When the last job of the history has been submitted, the demo is over:
// Observe says so with live.ErrOver.
//
// Time. The demo's clock stands still until something looks at it for the first time, and runs Speed times as fast as
// the wall clock from then on. It is the clock of all that a snapshot has: At, and the times of jobs. Who steers a demo
// has to live by it, too: Now tells it, and Sleep waits by it.
//
// Sharing. Processes that look at the same file see the same demo, for as long as one of them runs. Each computes its
// state by itself: the state follows from the history, and from a journal in Folder that has the moment when the clock
// began and all actions with their times. A process keeps a shared lock on the journal as long as it lives; the one
// that finds no lock begins a new demo. So there is no server to start and no port, and nothing stays behind. Where the
// system has no locks, each process has a demo of its own.
package demo
