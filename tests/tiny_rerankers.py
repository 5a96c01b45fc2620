"""Tiny models with random weights, saved as real ones are, for rerankers that read models out of folders."""
import string

WORDS = ["who", "founded", "the", "company", "ada", "zebra", "grass", "eats", "it", "in", "1999", "and", "was", "of",
         "port", "ship", "wind", "stone", "river", "."]


def tokenizer(longest):
    from transformers import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *string.ascii_lowercase,
             *(f"##{letter}" for letter in string.ascii_lowercase)]
    return BertTokenizer(vocab={word: place for place, word in enumerate(words)}, model_max_length=longest)


def config(longest, **more):
    from transformers import BertConfig

    return BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                      max_position_embeddings=longest, **more)


def cross_encoder(folder, longest=32, labels=1):
    """Saves a cross-encoder that reads so many tokens; returns the folder."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(config(longest, num_labels=labels))
    with torch.no_grad():  # else all scores are about equal
        model.classifier.weight.mul_(50)
    model.save_pretrained(folder)
    tokenizer(longest).save_pretrained(folder)
    return folder


def sentence_model(folder, longest=16):
    """Saves a model with one vector a text that reads so many tokens; returns the folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertModel

    torch.manual_seed(0)
    BertModel(config(longest)).save_pretrained(folder)
    tokenizer(longest).save_pretrained(folder)
    layers = Transformer(str(folder))
    SentenceTransformer(modules=[layers, Pooling(layers.get_embedding_dimension())]).save_pretrained(str(folder))
    return folder


def multi_vector_model(folder, longest=16):
    """Saves a model of several vectors a text: 8 numbers a token, and punctuation left out of passages."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    torch.manual_seed(0)
    layers = Transformer(str(sentence_model(folder / "layers", longest)))
    smaller = Dense(16, 8, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings",
                    module_output_name="token_embeddings")
    modules = [layers, smaller, MultiVectorMask(skiplist_words=["."]), Normalize(module_input_name="token_embeddings")]
    MultiVectorEncoder(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder


def sparse_encoder(folder, longest=32):
    """Saves a SPLADE model with random weights; returns the folder."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from transformers import BertForMaskedLM

    torch.manual_seed(0)
    bare = masked_model(folder.with_name(f"{folder.name}-bare"), longest)
    layers = Transformer(str(bare), transformer_task="fill-mask")
    with torch.no_grad():  # else every text weighs every word about equally
        layers.auto_model.cls.predictions.decoder.weight.mul_(40)
    assert isinstance(layers.auto_model, BertForMaskedLM)
    SparseEncoder(modules=[layers, SpladePooling()], device="cpu").save_pretrained(str(folder))
    return folder


def masked_model(folder, longest=32):
    """Saves a bare masked language model, without layers of sentence-transformers; returns the folder."""
    from transformers import BertForMaskedLM

    BertForMaskedLM(config(longest)).save_pretrained(folder)
    tokenizer(longest).save_pretrained(folder)
    return folder


def causal_model(folder):
    """Saves a tiny model that generates text; returns the folder."""
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=32, n_embd=16, n_layer=1, n_head=2)).save_pretrained(folder)
    tokenizer(32).save_pretrained(folder)
    return folder
