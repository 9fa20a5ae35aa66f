package swf

import "time"

// Record is one line of a log with all 18 fields. A number below 0, usually -1, means unknown; an unknown time is -1 s.
type Record struct {
	Number     int64         // 1: of the job
	Submit     time.Duration // 2: on the log's clock
	Wait       time.Duration // 3: from submit to start
	Run        time.Duration // 4: from start to end
	Allocated  int64         // 5: processors
	CPU        time.Duration // 6: used by each processor on average
	UsedMem    int64         // 7: KB of each processor on average, rounded
	Requested  int64         // 8: processors
	Time       time.Duration // 9: requested, of run time or of CPU time for each processor
	Mem        int64         // 10: KB requested for each processor
	Status     int64         // 11: 1 completed, 0 failed, 5 cancelled; 2, 3 and 4 are parts of a checkpointed job
	User       int64         // 12
	Group      int64         // 13
	Executable int64         // 14
	Queue      int64         // 15: 0 = interactive
	Partition  int64         // 16
	Preceding  int64         // 17: the number of a job that had to end before this one was sent
	Think      time.Duration // 18: from that end to this submit
}

// Record returns the line of the job that Next returned last. The fields that Next does not need are parsed only here,
// so a fault in them is reported only here. Record is valid only after Next returned a job.
func (d *Reader) Record() (*Record, error) {
	r := &Record{
		d.number(fieldID), d.seconds(fieldSubmit), d.seconds(fieldWait), d.seconds(fieldRun), d.number(fieldAllocated),
		d.seconds(fieldCPU), d.kilobytes(fieldUsedMem), d.number(fieldProcs), d.seconds(fieldTime), d.kilobytes(fieldMem),
		d.number(fieldStatus), d.number(fieldUser), d.number(fieldGroup), d.number(fieldExecutable), d.number(fieldQueue),
		d.number(fieldPartition), d.number(fieldPreceding), d.seconds(fieldThink),
	}
	return r, d.err
}

// Dropped returns how many lines were left out so far, because their job did not run or has no size.
func (d *Reader) Dropped() int { return d.idle + d.empty }
