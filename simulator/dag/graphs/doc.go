// Package graphs reads task graphs from files whatever their format, and cuts them into the parts that an agent trains
// on, is chosen by and is judged by.
//
// The format is found by the file's first bytes, packed (gzip, zstd, bzip2, zip) or not:
//
//	dag-json  simulator/dag/dagjson; graphs may bring processors of their own
//	wfformat  WfCommons, simulator/dag/wfformat
//	alibaba   the table of Alibaba's cluster-trace-v2018, traces/alibaba
//	tpch      the TPC-H queries measured on Spark, traces/tpch
//
// A Reader gives the graphs of one file one after the other; Load reads a file or a folder into a Set.
package graphs
