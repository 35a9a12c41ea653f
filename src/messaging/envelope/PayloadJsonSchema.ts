import { Record, Result, Schema, type SchemaAST, SchemaRepresentation } from "effect"

/** The maximum number of parts. The size of a schema whose parts share parts doubles with each level. */
const maxParts = 20_000

/**
 * Returns the JSON Schema (draft 2020-12) of the payloads that `schema` decodes, as text. Fails if it cannot be written
 * as one. It may accept payloads that `schema` refuses, such as for a filter without a form in JSON Schema.
 */
export const ofSchema = (schema: Schema.Constraint): Result.Result<string, unknown> =>
  Result.try(() => {
    const encoded = Schema.toEncoded(schema)
    if (partsOf(encoded.ast) > maxParts) throw new RangeError(`The schema has more than ${maxParts} parts.`)
    const { references, representation } = Schema.toRepresentation(encoded)
    const document = SchemaRepresentation.toJsonSchemaDocument({
      representation: jsonForm(representation),
      references: Record.map(references, jsonForm)
    })
    return JSON.stringify({ ...document.schema, $defs: document.definitions })
  })

/** Returns the number of parts that the schema has when it is written out. Shared parts are counted once for each use. */
const partsOf = (ast: SchemaAST.AST, known = new Map<SchemaAST.AST, number>()): number => {
  const before = known.get(ast)
  if (before !== undefined) return before
  // Applies to a schema that refers to itself, which is written as a reference.
  known.set(ast, 1)
  const parts = childrenOf(ast).reduce((sum, child) => sum + partsOf(child, known), 1)
  known.set(ast, parts)
  return parts
}

const childrenOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  switch (ast._tag) {
    case "Suspend":
      return [ast.thunk()]
    case "Arrays":
      return [...ast.elements, ...ast.rest]
    case "Objects":
      return [...ast.propertySignatures, ...ast.indexSignatures].map(({ type }) => type)
    case "Union":
      return ast.types
    case "Declaration":
      return ast.typeParameters
    default:
      return []
  }
}

type Representation = SchemaRepresentation.Representation

const never: Representation = { _tag: "Never", checks: [] }
const unknown: Representation = { _tag: "Unknown", checks: [] }
const finite = Schema.toRepresentation(Schema.Finite).representation

/**
 * Handlers decode the JSON of a payload itself, and not its canonical form in Effect, which has `null` for `undefined`
 * and texts for numbers such as `NaN`.
 */
const jsonForm = (node: Representation): Representation => {
  switch (node._tag) {
    case "Undefined":
    case "BigInt":
    case "Symbol":
    case "UniqueSymbol":
      return never
    case "Void":
      return unknown
    case "Number":
      return finite._tag === "Number" ? { ...node, checks: [...finite.checks, ...node.checks] } : node
    case "Suspend":
      return { ...node, thunk: jsonForm(node.thunk) }
    case "Arrays":
      return {
        ...node,
        elements: node.elements.map((element) => ({ ...element, type: jsonForm(element.type) })),
        rest: node.rest.map(jsonForm)
      }
    case "Objects":
      return {
        ...node,
        propertySignatures: node.propertySignatures.map((property) => ({ ...property, type: jsonForm(property.type) })),
        indexSignatures: node.indexSignatures.map((index) => ({ ...index, type: jsonForm(index.type) }))
      }
    case "Union":
      return unionForm(node)
    default:
      return node
  }
}

const unionForm = (node: SchemaRepresentation.Union): Representation => {
  const types = node.types.map(jsonForm).filter((type) => type !== never)
  const [first, ...others] = types
  if (first === undefined) return never
  return others.length === 0 && node.checks.length === 0 ? first : { ...node, types }
}
