"""What is looked up in a model, a run or a schedule, and judged."""
