# Reference numbers from rliable 1.2.0 for a fixed matrix of scores.
import numpy as np, json
from rliable import metrics, library
def lcg(n, s):
    out=[]
    for _ in range(n):
        s=(s*1103515245+12345)%2**31
        out.append(round(s/2**31*1.6-0.3,3))
    return np.array(out)
x=lcg(40,1).reshape(5,8); y=lcg(24,2).reshape(3,8)
y[:,3]=x[:3,3]; y[0,5]=x[2,5]
taus=[-0.2,0,0.25,0.5,0.75,1,1.2]
r={'x':x.T.tolist(),'y':y.T.tolist(),'iqm':[metrics.aggregate_iqm(x),metrics.aggregate_iqm(y)],'mean':[metrics.aggregate_mean(x),metrics.aggregate_mean(y)],
'median':[metrics.aggregate_median(x),metrics.aggregate_median(y)],'gap':[metrics.aggregate_optimality_gap(x),metrics.aggregate_optimality_gap(y)],
'poi':metrics.probability_of_improvement(x,y),'taus':taus,'profile':library.score_distributions(x,np.array(taus)).tolist()}
np.random.seed(0)
f=lambda s: np.array([metrics.aggregate_iqm(s)])
for tb in (False,True):
    _,ci=library.get_interval_estimates({'x':x},f,reps=20000,task_bootstrap=tb)
    r['ci_tasks' if tb else 'ci_runs']=[float(ci['x'][0][0]),float(ci['x'][1][0])]
_,ci=library.get_interval_estimates({'p':[x,y]},lambda a,b: np.array([metrics.probability_of_improvement(a,b)]),reps=2000)
r['ci_poi']=[float(ci['p'][0][0]),float(ci['p'][1][0])]
print(json.dumps(r))
