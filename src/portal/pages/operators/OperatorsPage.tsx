import { PageHeader } from "../../shared/page/PageHeader.tsx"

const OperatorsPage = () => <PageHeader title="Operators" />

export default OperatorsPage
