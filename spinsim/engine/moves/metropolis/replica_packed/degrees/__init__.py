"""Replica-packed graphs whose degrees differ much: sites of like degree side by side."""
