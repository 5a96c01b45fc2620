"""The tool sql: tables of documents, and queries that must not reach anything else."""
from toy_corpus import ToyCorpus, ask, html_document, spans, text_document, texts, use

REPORT = html_document("reports/2023.html", """<h1>Report</h1><table><caption>Revenue by year, in millions</caption>
<tr><th>Year</th><th>Revenue</th><th>Growth</th><th>Note</th></tr>
<tr><td>2021</td><td>$1,200.10</td><td>5%</td><td>first</td></tr>
<tr><td>2022</td><td>$(320.20)</td><td>-</td><td>a "second"</td></tr></table>
<p>Text.</p><table><tr><th>2023</th><th>2023</th></tr><tr><td>1</td><td>x</td></tr><tr><td>2</td><td></td></tr></table>""")
CORPUS = ToyCorpus(text_document("plain.txt", "no tables"), REPORT)


def test_a_table_of_tables_names_them_with_their_columns_and_units():
    assert texts(ask("sql", CORPUS, query="SELECT * FROM tables ORDER BY name"))[0].splitlines() == [
        "name | document | title | page | rows | columns",
        "report | reports/2023.html | Report |  | 2 | n_2023, n_2023_2",
        "revenue_by_year_in_millions | reports/2023.html | Revenue by year, in millions |  | 2 | "
        "year, revenue ($), growth (%), note; in millions"]


def test_numbers_are_exact_and_the_queried_table_can_be_cited():
    found = ask("sql", CORPUS, query="SELECT sum(revenue) AS s, count(growth) AS n FROM revenue_by_year_in_millions;")
    assert texts(found)[0] == "s | n\n879.90 | 1"
    ((document, start, end),) = spans(found)
    assert document == REPORT.id
    assert REPORT.plain[start:end].startswith("| Year | Revenue |")


def test_text_stays_text_and_rows_keep_their_order():
    found = ask("sql", CORPUS, query="FROM revenue_by_year_in_millions SELECT note ORDER BY year DESC")
    assert texts(found)[0] == 'note\na "second"\nfirst'
    assert texts(ask("sql", CORPUS, query="SELECT 1 WHERE false")) == ["No rows."]


def test_tables_that_are_too_many_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr("ragbed.experiments.guests.agent_tools.sql._MAX_TABLES", 1)
    found = ask("sql", CORPUS, query="SELECT name FROM tables")
    assert texts(found)[0] == "name\nrevenue_by_year_in_millions\n(the other tables are left out)"


def test_tables_can_be_described():
    shown, described, explained = use(["sql"], CORPUS, *(("sql", {"query": query}) for query in (
        "SHOW TABLES", "DESCRIBE report;", "EXPLAIN SELECT 1")))
    assert texts(shown)[0] == "name\nreport\nrevenue_by_year_in_millions\ntables"
    assert texts(described)[0].splitlines()[1].startswith("n_2023 | BIGINT | YES")
    assert not explained.failure


def test_a_corpus_without_tables_says_so():
    assert ask("sql", ToyCorpus(text_document("a.txt", "x")), query="SELECT 1").failure == (
        "sql: the documents contain no tables")


def test_each_question_queries_the_tables_of_its_own_documents():
    rows = "<tr><th>A</th><th>B</th></tr><tr><td>7</td><td>x</td></tr><tr><td>8</td><td>y</td></tr>"
    other = ToyCorpus(html_document("b.html", f"<h1>B</h1><table>{rows}</table>"))
    assert texts(ask("sql", other, query="SELECT a FROM b"))[0] == "a\n7\n8"
    assert "Table with name b does not exist" in ask("sql", CORPUS, query="SELECT a FROM b").failure


HOSTILE = [
    ("SELECT * FROM read_text('/etc/passwd')", "file system operations are disabled"),
    ("SELECT * FROM read_csv('/etc/passwd')", "file system operations are disabled"),
    ("SELECT * FROM '/etc/passwd'", "does not exist"),
    ("SELECT * FROM glob('/*')", "file system operations are disabled"),
    ("SELECT * FROM sniff_csv('/etc/passwd')", "file system operations are disabled"),
    ("SELECT * FROM 'https://example.com/x.parquet'", "file system operations are disabled"),
    ("SELECT * FROM query('SELECT * FROM read_blob(''/etc/hosts'')')", "file system operations are disabled"),
    *((one, "write one query") for one in (
        "ATTACH '/tmp/x.db'", "INSTALL httpfs", "LOAD httpfs", "COPY report TO '/tmp/x'", "SET threads = 8",
        "EXPORT DATABASE '/tmp/x'", "CREATE TABLE t AS SELECT 1", "DROP TABLE report", "PRAGMA database_list",
        "CALL pragma_version()", "SELECT 1; DROP TABLE report", ";")),
    ("SELECT getenv('HOME')", "does not exist"),
    ("SELECT list_sum(range(1000000000))", "ut of Memory"),
    ("SELECT repeat('x', 2000000000)", ""),
    ("SELECT " + "(" * 4_000 + "1" + ")" * 4_000, "depth"),
    ("SELECT * FROM nonsense", "does not exist"), ("SELEKT", "syntax error"), ("SELECT 'é\x00\ud800'", "")]


def test_a_hostile_query_is_a_failure_and_leaves_the_tables_as_they_are():
    outputs = use(["sql"], CORPUS, *(("sql", {"query": query}) for query, _ in HOSTILE),
                  ("sql", {"query": "SELECT count(*) FROM revenue_by_year_in_millions"}))
    for (query, why), output in zip(HOSTILE, outputs, strict=False):
        assert output.failure.startswith("sql: "), query
        assert why in output.failure
        assert "\n" not in output.failure
    assert texts(outputs[-1])[0] == "count_star()\n2"


def test_a_change_within_a_query_is_undone():
    change = "WITH x AS (INSERT INTO report VALUES (9, 'q') RETURNING *) SELECT * FROM x"
    changed, after = use(["sql"], CORPUS, ("sql", {"query": change}), ("sql", {"query": "SELECT count(*) FROM report"}))
    assert texts(after)[0] == "count_star()\n2"
    assert changed.parts or changed.failure


def test_rows_columns_and_cells_are_bounded():
    many, endless, wide = use(
        ["sql"], CORPUS, ("sql", {"query": "SELECT * FROM range(1000000000)"}),
        ("sql", {"query": "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r"}),
        ("sql", {"query": "SELECT repeat('x', 1000000), " + ", ".join(map(str, range(200)))}))
    assert texts(many)[0].splitlines()[-1] == "(There are more rows or columns; select fewer, or aggregate.)"
    assert len(texts(many)[0].splitlines()) == 52
    assert len(texts(endless)[0].splitlines()) == 52
    assert len(texts(wide)[0]) < 1_000


def test_a_query_that_does_not_end_is_stopped_and_the_next_one_works(monkeypatch):
    monkeypatch.setattr("ragbed.experiments.guests.agent_tools.sql._SECONDS", 1.0)
    late, after = use(["sql"], CORPUS, ("sql", {"query": "SELECT count(*) FROM range(1000000000000) a, range(9) b"}),
                      ("sql", {"query": "SELECT 1 AS one"}))
    assert late.failure == "sql: it took longer than 1 seconds"
    assert texts(after)[0] == "one\n1"
