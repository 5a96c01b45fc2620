"""More file types: e-mail, e-books, OpenDocument, JSON, XML, RTF, reStructuredText, source code, logs, and OCR."""
