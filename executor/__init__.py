"""Carries out exactly the approved plan, journalled step by step."""
