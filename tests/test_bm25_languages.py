"""BM25 reads each text in its own language: stems, accents, compounds, and scripts without spaces."""
import pytest
from each_case import each
from pydantic import ValidationError
from test_bm25 import Few, rows

from ragbed.retrieval import Bm25, RerankerDeps

ENGLISH = [f"Report {number} describes the state of the reefs and of the harbour" for number in range(22)]
GERMAN = ["Die Häuser am Hafen sind alt, und das Wasser ist tief.",
          "Die Krankenversicherung ist eine Pflicht, und der Beitrag ist nicht hoch.",
          "Eine Versicherung ist teuer, aber das ist nicht neu."]
FRENCH = ["L'université est dans la ville et les élèves sont à la maison", "Les chevaux ne sont pas dans le pré"]
PORTUGUESE = ["A informação não é de graça", "As informações do país são boas e não são caras", "INFORMACAO"]
SPANISH = ["El año pasado los niños hablarían de la educación", "¿Y el señor? No, no es de España"]


@each(("others", "query", "expected"), [
    (GERMAN, "Häusern", [22]), (GERMAN, "Haus", [22]), (GERMAN, "haeuser", [22]),
    (FRENCH, "universités", [22]), (FRENCH, "cheval", [23]), (PORTUGUESE, "informações", [22, 23]),
    (SPANISH, "hablar", [22]), (["Hästarna är på ängen och de är inte mina"], "häst", [22]),
    (["Дома стоят на берегу реки"], "дом", [22]), (["Τα σπίτια στο λιμάνι"], "σπίτι", [22]),
    (["東京タワーは高い"], "タワー", [22]), (["北京是中国的首都"], "首都", [22]), (["ประเทศไทยมีภูเขา"], "ภูเขา", [22]),
    (["ປະເທດລາວ"], "ລາວ", [22]), (["ភាសាខ្មែរ"], "ខ្មែរ", [22]), (["မြန်မာနိုင်ငံ"], "မြန်မာ", [22])])
def test_a_few_texts_of_another_language_are_found_by_its_stems(others, query, expected):
    assert rows([*ENGLISH, *others], query) == expected


def test_the_english_texts_around_them_are_found_as_before():
    assert rows([*ENGLISH, *GERMAN, *FRENCH], "the harbours of report 7", k=1) == [7]
    assert rows(["The die was cast", *GERMAN], "The die", language="english", k=1) == [0]


@each(("language", "texts", "query", "expected"), [
    ("french", FRENCH, "universite", [0]), ("french", FRENCH, "UNIVERSITES", [0]), ("french", FRENCH, "eleve", [0]),
    ("portuguese", PORTUGUESE, "informacao", [2, 0, 1]), ("portuguese", PORTUGUESE, "informação", [2, 0, 1]),
    ("spanish", SPANISH, "educacion", [0]), ("spanish", SPANISH, "ano", []), ("spanish", SPANISH, "año", [0]),
    ("italian", ["La città è bella", "perché no"], "perche", [1]), ("italian", ["La città è bella"], "citta", [0]),
    ("german", GERMAN, "Hauser", [0]), ("swedish", ["En häst"], "hast", []), ("turkish", ["göl"], "gol", []),
    ("english", ["A café"], "cafe", [])])
def test_accents_are_folded_where_lucene_folds_them(language, texts, query, expected):
    assert sorted(rows(texts, query, language=language)) == sorted(expected)


def test_folding_is_an_option():
    assert rows(["A café"], "cafe", accents="folded") == rows(["En häst"], "hast", language="swedish",
                                                              accents="folded") == [0]
    assert rows(FRENCH, "eleves", language="french", accents="kept") == []
    assert rows(FRENCH, "élèves", language="french", accents="kept") == [0]
    assert rows(["le café"], "cafe", language="french", stemming=False) == [0]


def test_a_word_with_accents_counts_once():
    plain, accented = Few("la ville universite", "le pre"), Few("la ville université", "le pre")
    one, other = (Bm25(language="french").open(texts, RerankerDeps()).search(["université"], 1)[0][0].score
                  for texts in (plain, accented))
    assert one == other


@pytest.mark.parametrize(("query", "expected"), [
    ("Versicherung", [2, 1]), ("Krankenversicherungen", [1, 2]), ("Pflichtbeitrag", [1]), ("Beiträge", [1])])
def test_compounds_are_found_by_their_parts_if_asked_for(query, expected):
    assert rows(GERMAN, query, language="german", compounds=True) == expected
    assert [row - 22 for row in rows([*ENGLISH, *GERMAN], query, compounds=True)] == expected


@pytest.mark.parametrize(("texts", "query"), [
    (["Krankenversicherungsbeitrag"], "Beitrag"), (["Haustürschlüssel", "Haus", "Tür", "Schlüssel"], "Tür"),
    (["Bundesrat", "Bund", "Rat"], "Rat"), (["Donaudampfschifffahrt", "Dampf"], "Donau")])
def test_compounds_of_several_parts_and_parts_that_are_nowhere_else(texts, query):
    assert 0 in rows(texts, query, language="german", compounds=True)
    assert 0 not in rows(texts, query, language="german")


def test_compounds_are_refused_where_no_language_has_them():
    with pytest.raises(ValidationError, match="compounds: french does not write compounds as one word"):
        Bm25(language="french", compounds=True)


def test_what_is_kept_on_disk_knows_languages_accents_and_compounds(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path))
    texts = Few(*ENGLISH * 46, *GERMAN, *FRENCH)
    texts.text_hash = "texts"
    (first, again) = ([[hit.chunk.document for hit in hits] for hits in Bm25(compounds=True).open(
        texts, RerankerDeps()).search(["Häusern", "universite", "Versicherung"], 2)] for _ in range(2))
    assert first == again == [["1012"], ["1015"], ["1014", "1013"]]
    assert len(list((tmp_path / "bm25").iterdir())) == 1
