import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/operators",
  validateSearch: textSearch("tab", "do"),
  component: laterPage(() => import("./OperatorsPage.tsx"))
})

export const operatorsRoutes = [list] as const
