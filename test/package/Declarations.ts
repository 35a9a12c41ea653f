import { execFileSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Node, SyntaxKind } from "typescript/unstable/ast"
import { API, type Checker, type NodeHandle, type Symbol, SymbolFlags } from "typescript/unstable/sync"
import manifest from "../../package.json" with { type: "json" }
import { root } from "../Guides.ts"

export interface Entry {
  /** The name by which users import it, such as `svc-runtime/messaging`. */
  readonly name: string
  /** The path of its declarations below the folder of all declarations. */
  readonly path: string
}

/** All entries of the package, in their order in package.json. */
export const entries: ReadonlyArray<Entry> = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "string"
    ? []
    : [{ name: `${manifest.name}${name.slice(1)}`, path: target.types.replace("./dist/", "") }]
)

/** An exported name, and its declaration or the exports of its namespace. */
export type Export =
  | { readonly name: string; readonly symbol: Symbol }
  | { readonly name: string; readonly members: ReadonlyArray<Export> }

/** The declarations of the package's own modules, as the compiler sees them. */
export interface Declarations {
  readonly exportsOf: (entry: Entry) => ReadonlyArray<Export>
  /** Returns the declarations of a symbol that are at the top of one of the package's modules. */
  readonly declarationsOf: (symbol: Symbol) => ReadonlyArray<Node>
  /** Returns the symbols that the identifiers inside of a declaration name. */
  readonly namedIn: (declaration: Node) => ReadonlyArray<Symbol>
  /** Returns the path of the source file of a declaration. */
  readonly moduleOf: (declaration: Node) => string
}

/** Compiles the declarations of all entries without comments, and hands them to `use`. */
export const withDeclarations = <A>(use: (declarations: Declarations) => A): A => {
  // The compiler names files by their real path.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-test-api-")))
  const sources = entries.map(({ path }) => join(root, path.replace(/\.d\.ts$/, ".ts")))
  const types = { typeRoots: [join(root, "node_modules", "@types")] }
  const compiled = configuration(folder, "compile", "src/tsconfig.package.json", sources, {
    ...types,
    ...{ rootDir: root, outDir: folder, sourceMap: false, inlineSources: false },
    ...{ emitDeclarationOnly: true, removeComments: true, noCheck: true }
  })
  const api = new API()
  try {
    execFileSync(join(root, "node_modules", ".bin", "tsc"), ["-p", compiled], {
      stdio: ["ignore", "inherit", "inherit"]
    })
    const files = entries.map(({ path }) => join(folder, path))
    return use(open(api, folder, configuration(folder, "read", "tsconfig.json", files, types)))
  } finally {
    api.close()
    rmSync(folder, { recursive: true })
  }
}

const configuration = (
  folder: string,
  name: string,
  base: string,
  files: ReadonlyArray<string>,
  compilerOptions: object
): string => {
  const path = join(folder, `tsconfig.${name}.json`)
  writeFileSync(path, JSON.stringify({ extends: join(root, base), compilerOptions, include: [], files }))
  return path
}

const open = (api: API, folder: string, configurationFile: string): Declarations => {
  const project = api.updateSnapshot({ openProjects: [configurationFile] }).getProject(configurationFile)
  if (project === undefined) throw new Error(`The compiler did not open ${configurationFile}`)
  const { checker, program } = project
  const isOwn = ({ path }: NodeHandle) => path.startsWith(`${folder}/`)
  return {
    exportsOf: ({ path }) => {
      const file = program.getSourceFile(join(folder, path))
      const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
      return module === undefined ? [] : exportsOf(checker, module)
    },
    declarationsOf: (symbol) =>
      symbol.declarations
        .filter(isOwn)
        .flatMap((handle) => handle.resolve(project) ?? [])
        .filter(isAtTop),
    namedIn: (declaration) =>
      checker.getSymbolAtLocation(identifiersIn(declaration)).flatMap((symbol) => {
        return symbol === undefined ? [] : resolved(checker, symbol)
      }),
    moduleOf: (declaration) =>
      declaration
        .getSourceFile()
        .fileName.slice(folder.length + 1)
        .replace(/\.d\.ts$/, ".ts")
  }
}

const resolved = (checker: Checker, symbol: Symbol): Symbol =>
  (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)

const exportsOf = (checker: Checker, module: Symbol): ReadonlyArray<Export> =>
  checker
    .getExportsOfModule(module)
    .map((exported): Export => {
      const symbol = resolved(checker, exported)
      return symbol.declarations.some(({ kind }) => kind === SyntaxKind.SourceFile)
        ? { name: exported.name, members: exportsOf(checker, symbol) }
        : { name: exported.name, symbol }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))

/** The name of a constant is two levels below its statement. */
const isAtTop = (declaration: Node): boolean => {
  const statement = declaration.kind === SyntaxKind.VariableDeclaration ? declaration.parent.parent : declaration
  return statement.parent?.kind === SyntaxKind.SourceFile
}

const identifiersIn = (node: Node): ReadonlyArray<Node> => {
  const found: Array<Node> = []
  const visit = (child: Node): undefined => {
    if (child.kind === SyntaxKind.Identifier) found.push(child)
    child.forEachChild(visit)
  }
  visit(node)
  return found
}
