// Package study says what an experiment is and how it is run, kept, resumed and reported.
//
// A Study is a list of cells, each computed once and kept in a file of its own, and tables and figures made from
// their rows. Cells run side by side; what they compute depends on their input alone, so the number of workers
// changes nothing but speed, and an experiment that was interrupted goes on where it stopped. Wall-clock figures
// (rows of a metric or label named timing…) are reported, but stand in a file of their own and belong to no
// comparison of bytes.
//
// The folder of an experiment:
//
//	cells/KEY.json    the rows of a cell, with its input and its digest
//	work/KEY/         files of a cell, such as the run directory of a training
//	table.txt         what is printed at the end; index.html is the same as a page, with the figures
//	results.csv       every aggregated figure, with interval and the paper's figure
//	rows.csv          every row of every cell; timing.csv those that measure the machine
//	figures/*.svg     the figures
//
// It knows no paper, no scheduler and no learner: package experiments holds the studies.
package study
