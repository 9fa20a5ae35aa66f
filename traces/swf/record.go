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

// Record returns the line of the job that Next returned last. It belongs to the reader and is overwritten by the next
// call. The fields that Next does not need are parsed only here, so a fault in them is reported only here. Record is
// valid only after Next returned a job.
func (d *Reader) Record() (*Record, error) {
	r := &d.record
	for _, c := range [...]struct {
		field int
		to    *int64
	}{{fieldID, &r.Number}, {fieldAllocated, &r.Allocated}, {fieldProcs, &r.Requested}, {fieldStatus, &r.Status}, {fieldUser, &r.User},
		{fieldGroup, &r.Group}, {fieldExecutable, &r.Executable}, {fieldQueue, &r.Queue}, {fieldPartition, &r.Partition}, {fieldPreceding, &r.Preceding}} {
		var err error
		if *c.to, err = d.number(c.field); err != nil {
			return nil, err
		}
	}
	for _, c := range [...]struct {
		field int
		to    *time.Duration
	}{{fieldSubmit, &r.Submit}, {fieldWait, &r.Wait}, {fieldRun, &r.Run}, {fieldCPU, &r.CPU}, {fieldTime, &r.Time}, {fieldThink, &r.Think}} {
		var err error
		if *c.to, err = d.seconds(c.field); err != nil {
			return nil, err
		}
	}
	var err error
	if r.UsedMem, err = d.kilobytes(fieldUsedMem); err != nil {
		return nil, err
	}
	if r.Mem, err = d.kilobytes(fieldMem); err != nil {
		return nil, err
	}
	return r, nil
}
