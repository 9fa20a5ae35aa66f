// Package sim is a discrete-event simulation of jobs on a cluster: events out, decisions in. It calls nobody
// back: Advance runs until something has happened and returns that point in time; the caller takes decisions
// (Apply) until it waits, and advances again. Run does this for a Scheduler.
//
// # Time and order
//
// Simulated time is an integer time.Duration since the trace's origin. At one instant job finishes come first,
// then failures of nodes, recoveries, arrivals and timers; finishes in the order in which the jobs were started,
// nodes by number, arrivals in the order of the trace. Then there is one decision point for the instant. It ends
// only when the policy waits, so a preemptive policy is asked on a full cluster too. At one point there may be one
// decision about a job, so a point always ends. A job without work finishes in the instant in which it starts,
// which makes a second point at the same time. With Config.Serial every event is a point of its own, and at one
// time arrivals come first.
//
// # Work
//
// A job's work is its run time alone on the GPUs asked for, at reference speed and best placement. It progresses at
//
//	rate = speed of its slowest GPU × scaling × communication factor × interference
//
// Speed is the model's own for the type of GPU where its profile has one, else the cluster's. Scaling is the
// model's throughput on the gang's GPUs over that on those asked for: 1 unless an elastic gang has another size.
// Communication (Config.Comm) is none, or compares the gang's place with the best one for as many GPUs: tree by
// TopDRL's cost of a placement, ring by the time of an all-reduce in rings (ring.go), contention by that of an
// exchange over links that several gangs use (contention.go). The last two ask for the model of every gang with
// more than one GPU: a job that has none is a fault of the stream. Interference is the product of what each other
// job on the same GPU, or node, leaves the job. On counters, whose GPUs lie nowhere, communication and interference
// are 1.
//
// What is left of a job is a float64 of nanoseconds, brought up to date only when its rate changes; it finishes at
// now + ⌈left/rate⌉, and that completes it by definition. So at rate 1 times are exact (for work below 2^53 ns, 104
// days), and else within 1 ns for each change of rate. A rate changes only when an event changes its inputs, and
// only jobs on the same nodes or uplinks are looked at. It follows from who runs where, not from the order in
// which they came; while several jobs start at one point, rates may change more than once.
//
// # Stints
//
// A gang holds its GPUs from its start. Where starting costs time (Config.Overhead) it progresses after that; what
// stopping costs is paid at the next start, for the GPUs are free at once. With Config.Checkpoint c, a state is
// saved whenever a stint has progressed for another c, however fast; a job that is stopped, by decision or by a
// failure, goes back to the last one, or to what it was when the stint began. Without, nothing is ever lost.
// Config.Restart is work that is added to what is left whenever a job is started again, and that is work like any
// other from then on. So over a job's life
//
//	progress = work + restarts × Config.Restart + lost (View.Lost)
//
// Migration gives a running gang other GPUs, which may be some of its own; resizing gives an elastic one another
// number, within its range. Both save a state first, so nothing is lost, pay for a stop and a start, and are no
// restart. An elastic job may also start with another number of GPUs than it asked for; when it stops, it wants
// what it asked for again. GPU-time is summed up over all sizes, exactly.
//
// # Failures
//
// With Config.Failures every node fails after an exponential time of working and works again after an exponential
// repair. Each node has a random stream of its own and draws from it whatever happens to jobs, so all policies see
// the same failures. The jobs on the node wait again (Fail, one event each, then NodeFail); the node has no room
// until NodeRecover. Failures go on until no job is left.
//
// # End
//
// The run ends when every job has finished, or at Config.Horizon, where unfinished jobs stay visible in the
// View. When nothing runs, nothing will arrive, no node will recover and no timer is set, waiting is refused
// (ErrWait) if a waiting job could start: nothing would ever happen. If none could, the run ends, and they too stay
// visible. Jobs that can never fit the cluster are refused as they are read, counted and named (Refused).
//
// A run needs memory for the jobs in the system, not for all those of the stream.
package sim
