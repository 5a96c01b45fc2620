"""Citation ablation: ask each answered question again without the cited passages, to see which citations matter."""
