// Package csv reads and writes the native trace format: any CSV file (RFC 4180; CR LF and a byte order mark are
// accepted) whose header has at least
//
//	submit_time  when the job was sent     duration  run time     num_gpu  GPUs of the gang
//
// In place of duration a file may have start_time and end_time; a job without one of them did not run to an end, is
// left out and counted. A num_gpu below 1 is a share of one GPU, in whole thousandths. Optional are job_id, user, vc,
// gpu_type (alternatives joined by |), num_cpu (cores of the gang), mem_gb (GiB of the gang), estimate, model,
// iterations, deadline, priority, min_gpu and max_gpu (elastic range), status, name (of the job, its script or
// executable), group (of users, or of recurring jobs), nodes (how many), hosts (their names) and eligible_time. An
// empty cell means "not given". The ID of a job without job_id is its position, from 0, and no two rows may have the
// same ID. Other columns are not read. Numbers are decimal and read exactly, never through a float.
//
// Files come from many programs, so the reader takes what they write:
//
//   - Fields stand between commas, semicolons, tabs or vertical bars, which the header shows. Between semicolons
//     numbers may have a decimal comma.
//   - A column is known by its name in any capitals and with anything between its words: "Submit Time", "submit-time",
//     "submitTime". Options.Columns maps other names. Without a column name the first of job_name, script_name, script,
//     executable, app_name, app, application_name, application and command is read as it; without a column group, the
//     first of group_name, user_group, account, project, group_tag and tag.
//   - Times (submit_time, start_time, end_time, deadline) are seconds since the trace's origin, unix times or dates
//     (see traces.ParseDate), all of one kind. Unix times, of which the first submit is from 1e9 to 4e9, and dates are
//     counted from the first job.
//   - Lengths of time (duration, estimate) are seconds or as traces.ParseDuration reads them.
//
// Nothing is guessed beyond that: the package does not read a column of another name because it looks right (its
// messages propose it), nor a date that does not tell day from month.
package csv
