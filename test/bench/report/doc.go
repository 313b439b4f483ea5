// SPDX-License-Identifier: Apache-2.0

// Package report turns what the benchmark has measured into a page, a chart and a verdict. It measures
// nothing, and all of it but the reading and writing of files is pure.
//
// A Section is what one workload has shown. It is kept as a JSON file, so that a run of one workload replaces
// its own section and leaves the others. Notes are what people have written about the targets that are missed.
package report
