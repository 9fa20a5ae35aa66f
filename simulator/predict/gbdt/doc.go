// Package gbdt predicts run times with gradient-boosted trees (boost), one ensemble for each quantile, on the
// statistics of package history and on what is written down at submit: Features names all of them. The target is the
// logarithm of the run time, counted in the requested time if there is one.
//
// Trees are fitted to jobs that have ended, each with its features as of its submit. A run fits them when First jobs
// have ended, and again whenever a Again-th part has been added, to the last Rows, of which those before the run count
// too if there is an archive; until the first fit, forecasts are history's. A predictor may begin with trees that are
// fitted to the part of a trace that had ended when the run begins (NewArchive), anew at Slices points of the trace; or
// use those of a file (NewFitted), which stay as they are. The quantiles but the median are moved by what jobs have
// outlived since, as in package history.
//
// A file (Fit, Fitted.AppendBinary, Parse) holds the trees, the features' names, and marks of the jobs that the trees
// have been fitted to, so that measuring them on these same jobs is noticed.
package gbdt
