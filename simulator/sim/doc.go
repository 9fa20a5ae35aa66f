// Package sim is a discrete-event simulation of jobs on a cluster: events out, decisions in. It has no callbacks.
// Advance runs until something has happened and returns that point in time; the caller makes decisions (Apply) until
// it waits, and advances again. Run does this for a Scheduler.
//
// # Time and order
//
// Simulated time is an integer time.Duration since the trace's origin. At one instant job finishes come first, then
// node failures, recoveries, arrivals and timers. Finishes are in the order in which the jobs were started, nodes by
// number, arrivals in the order of the trace. Then the instant has one decision point. It ends only when the policy
// waits, so a preemptive policy is asked even if the cluster is full. Each job can have at most one decision per
// point, so a point always ends. A job without work finishes in the instant in which it starts, which makes a second
// point at the same time. With Config.Serial every event is a point of its own, and arrivals come first at equal
// times.
//
// # Work
//
// A job's work is its run time alone on the GPUs it asks for, at reference speed and best placement. It progresses at
//
//	rate = speed of its slowest GPU × scaling × communication factor × interference
//
// Speed is the model's own for the type of GPU if its profile has one, else the cluster's. Scaling is the model's
// throughput on the gang's GPUs over its throughput on the GPUs asked for: 1 unless an elastic gang has another size.
// Communication (Config.Comm) is none, or compares the gang's placement with the best one for the same number of GPUs:
// tree by TopDRL's cost of a placement, ring by the time of an all-reduce in rings (ring.go), contention by the time
// of an exchange over links that several gangs use (contention.go). The last two need the model of every gang with
// more than one GPU; a job without one is an error of the stream. Interference is the product of the shares of its
// speed that the other jobs on the same GPU, or node, leave the job. On counters, whose GPUs have no place,
// communication and interference are 1.
//
// The remaining work of a job is a float64 of nanoseconds, updated only when its rate changes. The job finishes at now
// + ⌈left/rate⌉, which completes it by definition. So times are exact at rate 1 (for work below 2^53 ns, 104 days),
// and otherwise within 1 ns for each change of rate. A rate changes only when an event changes its inputs, and only
// jobs on the same nodes or uplinks are examined. Rates follow from which job runs where, not from the order in which
// that came about; while several jobs start at one point, a rate may change more than once.
//
// # Stints
//
// A stint is one period in which a gang holds GPUs, from a start to the next stop. If starting costs time
// (Config.Overhead), the gang progresses only after that; the cost of stopping is paid at the next start, because the
// GPUs are free at once. With Config.Checkpoint c, a state is saved each time a stint has progressed for another c, at
// whatever rate. A job that is stopped, by a decision or by a failure, returns to its last checkpoint, or to its state
// at the start of the stint. Without checkpoints nothing is ever lost. Config.Restart is work that is added to the
// remaining work at every start but the first, and is from then on work like any other. So over a job's life
//
//	progress = work + restarts × Config.Restart + lost (View.Lost)
//
// Migration gives a running gang other GPUs, which may include some of its own; resizing gives an elastic gang another
// number, within its range. Both save a state first, so nothing is lost. They pay for a stop and a start, but are not
// restarts. An elastic job may also start with another number of GPUs than it asked for; after a stop, its request is
// again what it asked for. GPU-time is summed exactly over all sizes.
//
// # Failures
//
// With Config.Failures every node fails after an exponential time of working and recovers after an exponential repair.
// Each node draws from its own random stream, independently of the jobs, so all policies see the same failures. The
// jobs on the node wait again (Fail, one event each, then NodeFail); the node has no room until NodeRecover. Failures
// continue until no job is left.
//
// # Facts
//
// A simulator can follow a cluster that another scheduler runs (Follow). Then facts take the place of work, arrivals
// and failures: Tell says what has happened (Fact), Look says what time it is and returns the point. The books are the
// same, so the facts of a recorded run show what the run has shown, bit for bit, and everything that looks at a View
// works on it: encoders, heuristics, searches and forks. Decisions are facts, too. Others can only be imagined: Imagine
// keeps a copy of the state, Apply works as ever, and Forget returns to the copy. Ask lets a Scheduler decide that way
// until it waits.
//
// Facts come in the order of their times. Those that cannot be (ErrFact) change nothing: a job that starts twice or
// ends without having started, GPUs that are taken, a name that nobody knows. A cluster does contradict itself at
// times, and what it tells can be lost; Follow and Present.Facts begin anew at what it is now, without its history.
//
// Work is known in recorded runs only (Following.Works). Otherwise the work of a job is the run time that is expected
// of it, and when it outlives that, what is expected of a job of its age; an hour, then twice as long each time, if
// nothing is. So Left, Finished and forks have the estimates' answer, and Trace(j).Work changes with it. A node that
// fails while jobs run on it drains: they go on, its free GPUs are held, and it is down as soon as the last job has
// left. Jobs that can never fit are counted (Refused).
//
// # End
//
// The run ends when every job has finished, or at Config.Horizon, where unfinished jobs stay visible in the View.
// Suppose that nothing runs, nothing will arrive, no node will recover and no timer is set. If a waiting job could
// start, waiting is refused (ErrWait), because nothing would ever happen. If none could, the run ends, and the waiting
// jobs stay visible too. Jobs that can never fit the cluster are refused as they are read, counted and named
// (Refused).
//
// A run needs memory for the jobs in the system, not for all jobs of the stream.
package sim
