"""Ontologies for an agent: RDF files read in a process that may die, and tools that look into them, page by page."""

from rlm.agent.ontology.context import OntologyContext, setup_ontology_context
from rlm.agent.ontology.rdf_client import RdfLimits
from rlm.agent.ontology.rdf_client import OntologyError, bundled, find_ontology

__all__ = ["OntologyContext", "OntologyError", "RdfLimits", "bundled", "find_ontology", "setup_ontology_context"]
