import resource, time, sys, warnings
sys.path.insert(0,'/work/main'); warnings.simplefilter('ignore')
src=open('/tmp/lab/parts_04/42b.py').read()
import re
class session: budget="quick"
start_method="fork"
import torch; torch.set_num_threads(1)
cells=re.split(r'(?m)^# %%(?!module).*\n',src)
ns=dict(session=session,start_method=start_method,torch=torch)
def cpu(): return [sum(resource.getrusage(w)[:2]) for w in (resource.RUSAGE_SELF,resource.RUSAGE_CHILDREN)]
for c in cells:
    if c.startswith('# ') and not c.startswith('# %%module'): continue
    if 'lk.' in c and 'FILES' not in c: continue
    a=cpu(); t=time.perf_counter()
    exec(c,ns)
    if 'sweep(data)' in c and 'kinds' in c:
        b=cpu(); print('wall',time.perf_counter()-t,'cpu self, children',[y-x for x,y in zip(a,b)]); break
