"""The reference of exercise 6.2-ddp: a training as a page would write it for DDP."""

# mypy: disable-error-code="var-annotated"
# a page writes no annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(model, data, step, path):
    # 1: the process group, 2: this rank's device
    local_rank = int(os.environ["LOCAL_RANK"])
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    # 3: the wrapper; the optimizer comes after it
    model = DDP(model.to(device), device_ids=[local_rank] if gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    # 4: each rank its own share, shuffled by the sampler
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)  # 5: another order in each epoch
        losses = [step(model, optimizer, batch) for batch in loader]
        # 6: the mean over all ranks, which all compute and one prints
        mean = torch.tensor(sum(losses) / len(losses), device=device)
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {mean:.2f}")
    # 7: one rank writes, under the plain names; the others wait until it is done
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)
    dist.barrier()
    dist.destroy_process_group()
