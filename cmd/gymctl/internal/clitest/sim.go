package clitest

// Jobs is a small trace.
const Jobs = "job_id,submit_time,duration,num_gpu\na,0,100,2\nb,5,10,1\nc,5,10,1\n"
