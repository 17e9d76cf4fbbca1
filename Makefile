# `make book` and `make test` each work as the first command on a fresh machine with Python and make.

PYTHON ?= python3
VENV := .venv
SURVEY_VENV := .survey-venv
BIN := $(VENV)/bin
DEPENDENCIES ?= --requirement requirements.txt
STRICT := -W -n --keep-going
# Two pytest workers already fill two cores: one thread each keeps them out of each other's way.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help book pdf serve test test-hard test-nightly processors check quick wheels mutants seeds draws ablations curves experiments renew real benchmark right-layers survey accept lab hooks clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

$(VENV)/installed: requirements.txt pyproject.toml src/verified_book/pyproject.toml src/book_site/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else \
		f"Python 3.11, 3.12 or 3.13 is needed, $(PYTHON) is {sys.version.split()[0]}. Try: make PYTHON=python3.11")'
	@echo "== Setting up $(VENV): a minute or two, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(DEPENDENCIES)
	@touch $@

book: $(VENV)/installed ## build the site into book/_build/html
	@echo "== Building the book: every cell runs, every output and every claim is checked"
	$(BIN)/jupyter-book build book/ $(STRICT)

pdf: $(VENV)/installed ## print the book into one PDF, which the site then offers (FOLDS=1: with proofs, twice as long)
	@echo "== Printing the book: three minutes; cells that have run run no more"
	$(BIN)/jupyter-book config sphinx book/
	$(BIN)/sphinx-build -q -b singlehtml -d book/_build/pdf/.doctrees book book/_build/pdf
	$(BIN)/python -m book_site pdf book/_build/pdf/index.html book/_build/html/book.pdf $(if $(FOLDS),,--brief)

serve: $(VENV)/installed ## show the book in a browser; build what changes, and reload the page
	$(BIN)/jupyter-book config sphinx book/
	$(BIN)/sphinx-autobuild book book/_build/html --doctree-dir book/_build/.doctrees --watch src --ignore '*/conf.py'

# `make book test` builds the site once: the tests take what this call has just built. In CI each test's
# name is printed as it ends: a run that is cut short still says which one failed.
BOOK_TOO := $(filter book,$(MAKECMDGOALS))

test: $(VENV)/installed $(BOOK_TOO) ## run every test but those of test-nightly
	@echo "== Testing the layers, the checks, the book's tools and the built site"
	$(if $(BOOK_TOO),BUILT_SITE=book/_build/html )$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --durations 100 --durations-min 3$(if $(CI), --verbose)

test-hard: $(VENV)/installed ## run every test ten times in orders by chance, twice as many at once; hours (RUNS=10 SEED=1)
	@echo "== Testing in orders by chance, with other draws, on a busy machine"
	@first=$(or $(SEED),$$(date +%s)); failed=; for seed in $$(seq $$first $$((first + $(or $(RUNS),10) - 1))); do \
		PYTHONHASHSEED=$$seed $(BIN)/python -m pytest --quiet --randomly-seed $$seed --numprocesses 4 --dist loadgroup || failed="$$failed $$seed"; \
	done; [ -z "$$failed" ] || { echo "== failed with SEED:$$failed; again: make test-hard RUNS=1 SEED=..."; exit 1; }

test-nightly: $(VENV)/installed ## run the tests that take too long for every run: all values where make test has some
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup -m nightly

processors: $(VENV)/installed ## run cells and tests as on other kinds of processor; hours (KINDS=avx2 THREADS=1 ONLY=book OTHERS=1)
	@echo "== Cells of the book, and tests of layers, checks and training, on each kind of processor"
	$(BIN)/python -m tools.processors $(if $(KINDS),--kinds $(KINDS)) $(if $(THREADS),--threads $(THREADS)) $(if $(ONLY),--only $(ONLY)) $(if $(OTHERS),--others)

check: $(VENV)/installed ## format, lint, types, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell

quick: check ## format, lint, types, spelling, and the tests of the layers: a few minutes
	$(BIN)/python -m pytest --numprocesses auto $(foreach package,layer_checks transformer_layers transformer_training,src/$(package) tests/$(package))

wheels: $(VENV)/installed ## build both distributions and try each by itself (newest: VERSIONS=newest)
	@echo "== Building the wheels, and trying each in an empty environment"
	$(BIN)/python -m tools.wheels $(if $(filter newest,$(VERSIONS)),--newest)

mutants: $(VENV)/installed ## print which check notices which wrong version, and which mutants of the layers no test notices; hours (NAMES="transformer_layers.norms.*")
	$(BIN)/python -m layer_checks
	$(BIN)/mutmut run $(NAMES)
	$(BIN)/mutmut results

seeds: $(VENV)/installed ## hold the checks against the right layers with 200 seeds
	SEEDS=200 $(BIN)/python -m pytest --numprocesses 2 tests/layer_checks/test_wrong_versions.py -k "never_flagged or derive_from_is_right"

draws: $(VENV)/installed ## run every chapter with ten other seeds: no claim may be luck (after make book)
	$(BIN)/python -m evaluation.draws

curves: $(VENV)/installed ## train small models without each part for longer and longer, ten seeds each; hours; writes evaluation/learning_curves/results.json
	$(BIN)/python -m evaluation.learning_curves

ablations: $(VENV)/installed ## train small models without each part, ten seeds each; twenty minutes; writes evaluation/ablations/results.json
	$(BIN)/python -m evaluation.ablations

real: $(VENV)/installed ## load the published GPT-2, hold it against transformers, read and write prose; needs a network (MODEL=folder)
	$(BIN)/python -m evaluation.published $(if $(MODEL),--model $(MODEL))

experiments: $(VENV)/installed ## run the chapters' long experiments; writes evaluation/experiments/results/
	$(BIN)/python -m evaluation.experiments

renew: $(VENV)/installed ## after a change of code that changes no number: run a part of each stale record again, and renew it
	$(BIN)/python -m evaluation.experiments --renew
	$(BIN)/python -m evaluation.ablations --renew
	$(BIN)/python -m evaluation.learning_curves --renew

benchmark: $(VENV)/installed ## measure the model beside transformers; writes evaluation/benchmarks/results.json
	env -u OMP_NUM_THREADS $(BIN)/python -m evaluation.benchmarks

$(SURVEY_VENV)/installed: evaluation/survey/requirements.txt evaluation/survey/environment.py $(VENV)/installed
	@echo "== Setting up $(SURVEY_VENV): some forty public works, without their dependencies"
	$(BIN)/python -m evaluation.survey.environment $(SURVEY_VENV)
	@touch $@

right-layers: $(VENV)/installed ## print whether `check` calls a right layer of torch or transformers wrong
	$(BIN)/python -m evaluation.right_layers

survey: $(SURVEY_VENV)/installed ## check layers of public works; writes evaluation/survey/results.json
	PYTHONPATH=src $(SURVEY_VENV)/bin/python -m evaluation.survey

accept: $(VENV)/installed ## rewrite the expected outputs from what ran; review with git diff
	VERIFIED_BOOK_ACCEPT=1 $(BIN)/jupyter-book build book/ $(STRICT)
	git diff --stat -- book

$(VENV)/lab-installed: requirements-lab.txt $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check --requirement requirements-lab.txt
	@touch $@

lab: $(VENV)/lab-installed book ## open every chapter as a notebook in JupyterLab, with a way back to its source
	$(BIN)/python -m book_site notebooks book book/_build/lab
	$(BIN)/jupytext-config --settings-file $(VENV)/share/jupyter/lab/settings/overrides.json set-default-viewer markdown
	$(BIN)/jupyter lab book/ --LabApp.default_url=/lab/tree/_build/lab/one_page.ipynb

hooks: $(VENV)/installed ## hold every commit to what `make check` says, before it is made
	$(BIN)/pre-commit install

clean: ## remove everything that was built
	rm -rf book/_build book/conf.py .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage mutants
