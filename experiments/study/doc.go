// Package study defines what an experiment is, and runs, keeps, resumes and reports it.
//
// A Study is a list of cells, each computed once and kept in a file of its own, and of tables and figures made from
// their rows. Cells run in parallel. What a cell computes depends only on its input, so the number of workers affects
// only speed, and an interrupted experiment continues where it stopped. Wall-clock figures (rows of a metric or label
// named timing…) are reported, but they are in a file of their own and excluded from comparisons of bytes.
//
// What a report shows is in a report.yaml next to the study: tables, figures, the paper's claims and notes
// (layout.go). It names values that the study's code has, such as the order of policies.
//
// The folder of an experiment:
//
//	cells/KEY.json    the rows of a cell, with its input and its digest
//	work/KEY/         files of a cell, such as the run directory of a training
//	table.txt         the tables printed at the end; index.html is a page with these, hidden columns and the figures
//	results.csv       every aggregated figure, with its interval and the paper's figure
//	rows.csv          the rows of all cells; timing.csv has those that measure the machine
//	figures/*.svg     the figures
//
// The package knows no paper, scheduler or learner. The studies are in the packages that package papers lists.
package study
