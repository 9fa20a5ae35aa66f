// Package report holds the results of comparisons, the JSON documents of gymctl eval, and prints their tables: policies
// on windows of a workload, on episodes, and on tasks that they adapt to.
package report
