"""The layout of PDF pages: lines, tables, paragraphs and their classes."""
