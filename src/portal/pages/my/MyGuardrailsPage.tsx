import { PageHeader } from "../../shared/page/PageHeader.tsx"

const MyGuardrailsPage = () => <PageHeader title="Guardrails" />

export default MyGuardrailsPage
