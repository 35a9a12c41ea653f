import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { type Node, SyntaxKind } from "typescript/unstable/ast"
import { isClassDeclaration, isImportTypeNode, isVariableDeclaration } from "typescript/unstable/ast/is"
import type { Symbol } from "typescript/unstable/sync"
import { root } from "../Guides.ts"
import { type Declarations, type Entry, type Export, entries, withDeclarations } from "./Declarations.ts"

/** A public name of a declaration, such as `Broker.ConsumeOptions` in `svc-runtime/services`. */
interface Name {
  readonly entry: Entry
  readonly path: ReadonlyArray<string>
  readonly symbol: Symbol
}

/** Text that replaces a part of a declaration. */
interface Edit {
  readonly from: number
  readonly to: number
  readonly text: string
}

/** A type of at least this length is written as the name of the constant that has it. */
const shortestFolded = 60

/**
 * Returns a report of each entry, by the name of the entry. A report has the declarations of all exports, and those
 * that the signatures name although no entry exports them. Each declaration is in one report: that of its shortest
 * public name. A service that is only required or provided contributes its name.
 */
export const reports = (): ReadonlyMap<string, string> =>
  withDeclarations((declarations) => {
    const report = new Report(declarations)
    const parts = entries.flatMap((entry) => [report.exported(entry), report.reached(entry)])
    const texts = formatted(parts)
    return new Map(
      entries.map(({ name }, at) => {
        const [exported = "", reached = ""] = texts.slice(2 * at)
        return [
          name,
          `# ${name}\n\n${block(exported)}${reached === "" ? "" : `\n${reachedTitle}\n\n${block(reached)}`}`
        ]
      })
    )
  })

class Report {
  readonly #declarations: Declarations
  readonly #exports: ReadonlyMap<Entry, ReadonlyArray<Export>>
  /** The shortest public name of each exported symbol. */
  readonly #homes: ReadonlyMap<Symbol, Name>
  /** The names of constants by their types, in which every white space is one blank. */
  readonly #folded: ReadonlyMap<string, string>
  readonly #reached: ReadonlyMap<Entry, ReadonlySet<Symbol>>

  constructor(declarations: Declarations) {
    this.#declarations = declarations
    this.#exports = new Map(entries.map((entry) => [entry, declarations.exportsOf(entry)]))
    const names = entries.flatMap((entry) => namesIn(entry, this.#exports.get(entry) ?? []))
    // The sort is stable: among names of the same length, the first entry wins.
    names.sort((a, b) => a.path.length - b.path.length)
    this.#homes = firstOf(names.map((name) => [name.symbol, name]))
    this.#folded = firstOf(
      [...this.#homes.values()].flatMap(({ path, symbol }) =>
        declarations
          .declarationsOf(symbol)
          .flatMap((declaration) => typeOf(declaration) ?? [])
          .map((type): [string, string] => [squashed(type), path.join(".")])
          .filter(([type]) => type.length >= shortestFolded)
      )
    )
    this.#reached = this.#reachedSymbols()
  }

  /** The declarations of the exports. */
  exported(entry: Entry): string {
    return this.#members(entry, this.#exports.get(entry) ?? [], [])
  }

  #members(entry: Entry, members: ReadonlyArray<Export>, path: ReadonlyArray<string>): string {
    return members
      .map((member) => {
        const own = [...path, member.name]
        if ("members" in member) return this.#namespace(entry, member, own)
        const home = this.#homes.get(member.symbol)
        return home?.entry === entry && isSame(home.path, own)
          ? this.#text(member.symbol, member.name)
          : `// ${member.name}: see ${home?.path.join(".")} of ${home?.entry.name}`
      })
      .join("\n")
  }

  #namespace(
    entry: Entry,
    { members, name }: Export & { readonly members: ReadonlyArray<Export> },
    path: Name["path"]
  ) {
    const whole = entries.find(
      (other) => other !== entry && isSame(symbolsOf(this.#exports.get(other)), symbolsOf(members))
    )
    return whole === undefined
      ? `namespace ${name} {\n${this.#members(entry, members, path)}\n}`
      : `// ${name}: see ${whole.name}`
  }

  /** A class names its base by a constant that the compiler makes, which is printed in front of it. */
  #text(symbol: Symbol, name: string): string {
    return this.#declarations
      .declarationsOf(symbol)
      .flatMap((declaration) => [...this.#bases(declaration), declaration])
      .map((declaration) => this.#declared(declaration, name))
      .join("\n")
  }

  #bases(declaration: Node): ReadonlyArray<Node> {
    if (!isClassDeclaration(declaration)) return []
    const base = `${declaration.name?.getText()}_base`
    return this.#declarations
      .namedIn(declaration)
      .filter(({ name }) => name === base)
      .slice(0, 1)
      .flatMap((symbol) => this.#declarations.declarationsOf(symbol))
  }

  #declared(declaration: Node, name: string): string {
    const whole = typeOf(declaration)
    const text = applied(declaration, this.#edits(declaration, whole))
    if (!isVariableDeclaration(declaration)) return text.replace(/^(export )?(default )?(declare )?/, "")
    const own = declaration.name.getText()
    return `const ${own.endsWith("_base") ? own : name}${text.slice(own.length)}`
  }

  #edits(node: Node, whole: Node | undefined): ReadonlyArray<Edit> {
    const [from, to] = [node.getStart(), node.end]
    if (isPrivate(node)) return [{ from, to, text: "" }]
    const same = node === whole || to - from < shortestFolded ? undefined : this.#folded.get(squashed(node))
    if (same !== undefined) return [{ from, to, text: `typeof ${same}` }]
    const edits: Array<Edit> = []
    const importedFrom = isImportTypeNode(node) && node.qualifier !== undefined ? node.qualifier.getStart() : undefined
    if (importedFrom !== undefined) edits.push({ from, to: importedFrom, text: "" })
    node.forEachChild((child) => {
      if (importedFrom === undefined || child.getStart() >= importedFrom) edits.push(...this.#edits(child, whole))
      return undefined
    })
    return edits
  }

  /** The declarations that the exports name, although no entry exports them. */
  reached(entry: Entry): string {
    const declarations = [...(this.#reached.get(entry) ?? [])].flatMap((symbol) =>
      this.#declarations
        .declarationsOf(symbol)
        .map((declaration) => ({ module: this.#declarations.moduleOf(declaration), symbol }))
    )
    const modules = Map.groupBy(declarations, ({ module }) => module)
    return [...modules]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([module, found]) => {
        const symbols = [...new Set(found.map(({ symbol }) => symbol))].sort((a, b) => (a.name < b.name ? -1 : 1))
        return `// ${module}\n\n${symbols.map((symbol) => this.#text(symbol, symbol.name)).join("\n")}`
      })
      .join("\n\n")
  }

  /** Each symbol belongs to the first entry whose signatures name it. */
  #reachedSymbols(): ReadonlyMap<Entry, ReadonlySet<Symbol>> {
    const seen = new Set<Symbol>(this.#homes.keys())
    const reachedFrom = (symbol: Symbol): ReadonlyArray<Symbol> =>
      this.#declarations
        .declarationsOf(symbol)
        .flatMap((declaration) => [...this.#bases(declaration), declaration])
        .flatMap((declaration) => this.#declarations.namedIn(declaration))
        .filter((named) => {
          const isNew = !seen.has(named)
          seen.add(named)
          return isNew && !named.name.endsWith("_base") && this.#isPrinted(named)
        })
        .flatMap((named) => [named, ...reachedFrom(named)])
    return new Map(
      entries.map((entry) => {
        const own = [...this.#homes].filter(([, home]) => home.entry === entry)
        return [entry, new Set(own.flatMap(([symbol]) => reachedFrom(symbol)))]
      })
    )
  }

  #isPrinted(symbol: Symbol): boolean {
    const declarations = this.#declarations.declarationsOf(symbol)
    const isService = declarations
      .flatMap((declaration) => this.#bases(declaration))
      .some((base) => /^\w+: Context\.ServiceClass</.test(base.getText()))
    return declarations.length > 0 && !isService
  }
}

const namesIn = (entry: Entry, exports: ReadonlyArray<Export>, path: ReadonlyArray<string> = []): Array<Name> =>
  exports.flatMap((exported) => {
    const own = [...path, exported.name]
    return "members" in exported
      ? namesIn(entry, exported.members, own)
      : [{ entry, path: own, symbol: exported.symbol }]
  })

const symbolsOf = (exports: ReadonlyArray<Export> = []): ReadonlyArray<Symbol> =>
  exports.flatMap((exported) => ("members" in exported ? symbolsOf(exported.members) : [exported.symbol]))

const isSame = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>): boolean =>
  a.length === b.length && a.every((item, at) => item === b[at])

const firstOf = <K, V>(pairs: ReadonlyArray<readonly [K, V]>): ReadonlyMap<K, V> => new Map(pairs.toReversed())

const typeOf = (declaration: Node): Node | undefined =>
  isVariableDeclaration(declaration) ? declaration.type : undefined

const squashed = (node: Node): string => node.getText().replace(/\s+/g, " ")

const applied = (node: Node, edits: ReadonlyArray<Edit>): string => {
  const { text } = node.getSourceFile()
  let printed = ""
  let at = node.getStart()
  for (const edit of edits) {
    printed += text.slice(at, edit.from) + edit.text
    at = edit.to
  }
  return printed + text.slice(at, node.end)
}

const isPrivate = (node: Node): boolean =>
  /^(static )?(readonly )?#|^private /.test(node.getText()) &&
  (node.kind === SyntaxKind.PropertyDeclaration ||
    node.kind === SyntaxKind.MethodDeclaration ||
    node.kind === SyntaxKind.GetAccessor ||
    node.kind === SyntaxKind.SetAccessor)

const reachedTitle = "Named by these signatures, but exported by no entry:"

const block = (text: string): string => `\`\`\`ts\n${text}\n\`\`\`\n`

const separator = "// Next part"

/** Formats declarations as Biome formats source files. */
const formatted = (parts: ReadonlyArray<string>): ReadonlyArray<string> =>
  execFileSync(join(root, "node_modules", ".bin", "biome"), ["format", "--stdin-file-path=report.d.ts"], {
    cwd: root,
    input: parts.join(`\n${separator}\n`),
    encoding: "utf8"
  })
    .split(separator)
    .map((part) => part.trim())
