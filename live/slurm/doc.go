// Package slurm is a Slurm cluster as live.Cluster, by the commands squeue, scontrol, sinfo, sprio and sacctmgr.
//
// Reading. The queue comes from squeue --json (releases 21.08 to 22.05 write plain numbers, later ones {set, infinite,
// number}), or from scontrol -d show job where squeue knows no JSON; nodes from scontrol show nodes --json, sinfo
// --json or scontrol show node. What is used follows from the release, and from trying. sprio tells the SiteFactor of
// waiting jobs.
//
//   - Tasks of an array are jobs of their own, 123_4, although Slurm keeps those that wait in one record. Tasks beyond
//     the array's limit are Blocked.
//   - The components of a heterogeneous job start together, so they are one job of the sum of their resources.
//   - A node with several types of GPUs is several nodes: the first type has the machine's name, the others name+type.
//   - A job with --exclusive gets all GPUs of its nodes. While it waits, it counts those of the largest node that it
//     may use.
//   - A job whose epilog still runs has ended. Slurm starts nothing on its nodes until then, although it shows their
//     GPUs as free; after a minute such nodes are down.
//   - A node of which Slurm counts more GPUs as taken than jobs hold, in two looks, is down: Slurm starts nothing on
//     those.
//   - Constraints on features, licences and reservations are not read: Slurm respects them whatever we do.
//
// Writing. All goes through one scontrol that reads its commands from a pipe. RankJob writes SiteFactor, which is one
// addend of the priority. HoldJob sets the priority to 0, as scontrol hold does, and in the same request writes
// "clustergym:hold" into the AdminComment; where we own the jobs and are no operator, into the Comment. StartJob
// replaces that by "clustergym:start", the nodes that it left and those that the owner had excluded, excludes all other
// nodes (ExcNodeList), and releases. So whatever was done can be found in the cluster and taken back by another
// process.
//
// Slurm refuses a request that names excluded nodes for a job that has started, as a whole; so the request of a hold
// writes the list as it is. ReqNodeList is never written: for a job that runs it means that all other nodes are taken
// from it.
package slurm
