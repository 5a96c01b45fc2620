"""A sentence-transformers model of a few thousand weights, drawn by chance: real files, loaded in no time."""
from pathlib import Path

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "the", "river", "rain", "sand", "sea", "42", "서울",
         *"abcdefghijklmnopqrstuvwxyz.,", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]


def make_tiny(folder: Path, window: int = 32, pooling: str = "mean", normalised: bool = True) -> Path:
    """A BERT of two layers with 32 dimensions, saved as sentence-transformers saves one."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(3)
    tokenizer = Tokenizer(WordPiece({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    bare = folder.parent / f"{folder.name}-bare"
    special = {f"{name.strip('[]').lower()}_token": name for name in WORDS[:5]}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special).save_pretrained(bare)
    BertModel(BertConfig(vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                         intermediate_size=64, max_position_embeddings=64)).eval().save_pretrained(bare)
    first = Transformer(str(bare), max_seq_length=window)
    modules = [first, Pooling(32, pooling_mode=pooling), *([Normalize()] if normalised else [])]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder
