"""The OpenAPI document, made of the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from evert.serve.http import Endpoint, Param
from evert.version import __version__

_KINDS = {"text": "string", "number": "integer", "truth": "boolean"}
_ERROR = {
    "type": "object",
    "required": ["error", "message", "hint"],
    "properties": {
        "error": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": ["string", "null"]},
    },
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Evert", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", endpoint.path)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in names
    ]
    parameters += [_parameter(param, "query") for param in endpoint.query]
    parameters += [_parameter(param, "header") for param in endpoint.headers]
    told: dict[str, Any] = {
        "summary": endpoint.about,
        "operationId": endpoint.handle.__name__,
        "parameters": parameters,
        "responses": {
            str(endpoint.status): {
                "description": "as asked",
                "content": {
                    kind: {
                        "schema": dict(endpoint.answer) if kind == "application/json" else {"type": "string"}
                    }
                    for kind in endpoint.gives
                },
            },
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if endpoint.takes:
        content = {
            kind: {"schema": dict(endpoint.body) if kind == "application/json" else {"type": "string"}}
            for kind in endpoint.takes
        }
        told["requestBody"] = {"required": True, "content": content}
    if endpoint.needs[0] == "nobody":
        told["security"] = [{}]
    return told


def _parameter(param: Param, place: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _KINDS[param.kind]}
    if param.kind == "number":
        schema |= {"minimum": 0, "maximum": 2**53}
    if param.choices:
        schema["enum"] = list(param.choices)
    if param.many:
        schema = {"type": "array", "items": schema, "minItems": 1}
    return {
        "name": param.name,
        "in": place,
        "required": param.required,
        "description": param.about,
        "schema": schema,
    }
