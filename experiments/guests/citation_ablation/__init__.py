"""Citation ablation: ask each answer again without the passages it cites, to see which citations it needs."""
