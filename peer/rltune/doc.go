// Package rltune is the simulator that the authors of RLTune published (Dongare et al., "RLTune: hybrid learning-guided
// scheduling of heterogeneous GPU clusters", SoCC 2025; github.com/dshruti20/RLTune), rebuilt from its rules alone: its three
// clusters, its base policies, its placement, its observation and its choice between placements. It shares no code with
// simulator/sim.
//
// A Machine is nodes in pools, to one of which a job belongs. Times are whole seconds. The waiting job that a base policy
// or an agent chooses is committed to: if it does not fit, the clock runs until it does, whatever pool the others are of, and
// nobody is asked meanwhile. Events are handled one at a time, an arrival before a completion of the same second. Jobs arrive while
// a job is held; when nobody waits, the clock runs until one job has arrived. A job that never fits is dropped once nothing runs.
//
// A way is a placement of a gang: how many GPUs on which nodes. Base policies take the First way. An agent's observation
// counts ways, and Choose picks one of up to four by the integer programme of the paper, which enumeration solves exactly.
//
// Some of the rules are faults of the program. They are kept, and the names and comments say where: the fragmentation term of
// the programme is always 0, "wfp3" favours jobs that came early, back-filling in Helios passes over jobs, and run times are
// known.
package rltune
